import { setTimeout as sleep } from 'node:timers/promises';
import type { CellUsage, LeftCell } from '../../core/cell.ts';
import { LIST, toDelete, toStats } from './argv.ts';
import type { ContainerCli } from './cli.ts';
import { CliRefusal, isNotFound } from './cli-words.ts';
import { isOf } from '../engine/owner-labels.ts';
import { isAppleOrphan } from './labels.ts';
import { parseContainers, parseStats, type ListedContainer } from './shapes.ts';

/** It waits for the virtual machine to end, and has no deadline of its own. */
const DELETE_MS = 20_000;
const ATTEMPTS = 20;
const LOOK_MS = 100;

async function listContainers(cli: ContainerCli): Promise<ListedContainer[]> {
  return parseContainers(await cli.call('list containers', LIST));
}

/**
 * Removes a container, running or not. One that is not there is as good as removed: it may have removed itself when its
 * first process ended, which also makes the CLI fail in the middle of what it does.
 */
export async function removeContainer(cli: ContainerCli, id: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await cli.call('remove a container', toDelete(id), DELETE_MS);
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      if (!(error instanceof CliRefusal) || attempt === ATTEMPTS) throw error;
      const left = await listContainers(cli);
      if (left.every((container) => container.id !== id)) return;
      await sleep(LOOK_MS);
    }
  }
}

/** Those of servers that are no longer alive. */
export async function findOrphans(cli: ContainerCli): Promise<LeftCell[]> {
  const orphans: LeftCell[] = [];
  for (const { id, configuration } of await listContainers(cli))
    if (await isAppleOrphan(configuration.labels)) orphans.push({ id, since: undefined });
  return orphans;
}

/**
 * Removes the containers of servers that are no longer alive, and those of this one that it knows nothing of: a call that
 * was given up may have been carried out later. Returns the ids of those that are gone.
 */
export async function removeOrphans(
  cli: ContainerCli,
  own: { readonly instance: string | undefined; isKnown(id: string): boolean },
): Promise<string[]> {
  const removed: string[] = [];
  for (const { id, configuration } of await listContainers(cli)) {
    const { labels } = configuration;
    const isLost = own.instance !== undefined && isOf(labels, own.instance) && !own.isKnown(id);
    if (!isLost && !(await isAppleOrphan(labels))) continue;
    // One that cannot be removed now is left to the next look and must not keep anybody from serving.
    const isGone = await removeContainer(cli, id).then(
      () => true,
      () => false,
    );
    if (isGone) removed.push(id);
  }
  return removed;
}

/** What all of a container uses. It counts for two seconds. */
export async function readUsage(cli: ContainerCli, id: string): Promise<CellUsage> {
  const [stats] = parseStats(await cli.call('count', toStats(id)));
  return {
    cpuMs: (stats?.cpuUsageUsec ?? 0) / 1000,
    memoryBytes: stats?.memoryUsageBytes,
    processes: stats?.numProcesses,
  };
}
