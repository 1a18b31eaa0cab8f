import { globSync, readFileSync } from 'node:fs';
import { engineApi } from './docker-engine.ts';

/** The pids of the host that are in the cell with this id, of the oci driver. */
export function cgroupPidsOf(id: string): number[] {
  return globSync(`/sys/fs/cgroup/{,*/}hotcell/*/${id}{,/**}/cgroup.procs`).flatMap((file) =>
    readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number),
  );
}

/** Is this the first process of a cell? */
export function isInit({ pid }: { readonly pid: number }): boolean {
  try {
    return /^NSpid:\t\d+\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

/** Of a fleet's cell by its id, as root of the host can do it, at any time: its first process, and with it all others. */
export const KILL_CELL = {
  docker: async (id: string): Promise<void> => {
    await engineApi().call('POST', `/containers/${id}/kill`);
  },
  oci: async (id: string): Promise<void> => {
    const init = [...new Set(cgroupPidsOf(id))].find((pid) => isInit({ pid }));
    process.kill(init ?? Number.NaN, 'SIGKILL');
  },
};
