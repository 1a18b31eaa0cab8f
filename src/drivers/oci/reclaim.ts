import { readdir } from 'node:fs/promises';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { Instance } from '../process/instance.ts';
import { hierarchiesOf, removeCgroups } from './cgroup.ts';
import { Keeper } from './keeper.ts';
import { toHiddenMounts, type OciHost } from './probe.ts';
import { toContainerIds, type RuntimeCli } from './runtime.ts';
import { cgroupPathOf, removeFolder, runtimeDirectoryOf, toCli } from './site.ts';
import { killStrayRuntimes } from './stray-runtimes.ts';

/** Returns the ids of the cells. An instance that cannot be removed is told, and keeps nobody from the others. */
export async function reclaimDead(host: OciHost, dead: readonly Instance[], log: Log): Promise<string[]> {
  await using keeper = await Keeper.open(toHiddenMounts(host));
  const reclaimed: string[] = [];
  for (const instance of dead) {
    try {
      reclaimed.push(...(await endCells(toCli(host, instance, keeper), instance)));
      await removeCgroups(hierarchiesOf(host.cgroups), cgroupPathOf(instance.id));
      await removeFolder(instance.directory);
    } catch (error) {
      log.error({ instance: instance.id, error: messageOf(error) }, 'instance removal failed');
    }
  }
  return reclaimed;
}

async function endCells(cli: RuntimeCli, instance: Instance): Promise<string[]> {
  killStrayRuntimes(runtimeDirectoryOf(instance));
  const ids = toContainerIds(await readdir(runtimeDirectoryOf(instance)).catch(() => []));
  for (const id of ids) {
    // gVisor's delete waits in vain for a sandbox that it has to kill itself.
    await cli.kill(id);
    await cli.delete(id);
  }
  return ids;
}
