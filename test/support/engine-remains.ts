import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { hierarchiesOf, removeCgroups } from '../../src/drivers/oci/cgroup.ts';
import { parseMounts, readCgroupLayout } from '../../src/drivers/oci/cgroup-layout.ts';
import { runCommand } from '../../src/drivers/process/run-command.ts';
import { waitFor } from './leftovers.ts';

/** Programs that an engine consists of; somebody's editor on one of its files is none of them. */
const PROGRAM = /^(dockerd|docker-proxy|containerd(-shim.*)?|runc|crun|runsc.*|exe)$/;

/** Its own, since the usual one stays behind and may be somebody else's. */
export function cgroupOf(folder: string): string {
  return `/hotcell-test-${basename(folder)}`;
}

/**
 * Ends and removes whatever the engine in this folder still has: processes, cgroups, mounts, sockets. Its data stay.
 * After an orderly stop there is next to nothing to do. After a kill there may be all of it.
 */
export async function clearRemains(folder: string): Promise<void> {
  await waitFor(`no process of the engine in ${folder} is left`, () => killProcesses(folder) === 0);
  await removeCgroups(hierarchiesOf(await readCgroupLayout()), cgroupOf(folder));
  await unmountAll(folder);
  for (const name of ['exec', 'docker.pid', 'docker.sock']) {
    rmSync(join(folder, name), { recursive: true, force: true });
  }
}

/** All name the folder among their arguments: the daemons as their own, the shims as the address to report to. */
function killProcesses(folder: string): number {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isPartOf(name, folder));
  for (const pid of pids) {
    try {
      process.kill(Number(pid), 'SIGKILL');
    } catch {
      // Ended meanwhile.
    }
  }
  return pids.length;
}

function isPartOf(pid: string, folder: string): boolean {
  try {
    const [program = '', ...args] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return PROGRAM.test(basename(program)) && args.some((word) => word.includes(`${folder}/`));
  } catch {
    return false;
  }
}

/** The engine in this folder has ended: what it mounted there goes, too. */
export async function unmountAll(folder: string): Promise<void> {
  // The last mounted first, since one may lie in another.
  for (const point of mountsIn(folder).toReversed()) {
    const { code } = await runCommand(['umount', point]);
    if (code !== 0) await runCommand(['umount', '--lazy', point]);
  }
}

/** What is mounted on the folder or below it. */
export function mountsIn(folder: string): string[] {
  return parseMounts(readFileSync('/proc/self/mountinfo', 'utf8'))
    .map(({ point }) => point)
    .filter((point) => point === folder || point.startsWith(`${folder}/`));
}
