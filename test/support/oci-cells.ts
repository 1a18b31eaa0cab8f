import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The runtime that stays with a cell, and the first process of the cell itself, as pids of the host. */
export interface CellProcesses {
  /** Where its bundle is. */
  readonly folder: string;
  readonly runtime: number;
  readonly init: number;
}

/** The cells of the oci driver in one folder of a state directory: of an instance, or of those that last. */
export function findCells(stateDirectory: string, instance: string): CellProcesses[] {
  const ids = readdirSync(join(stateDirectory, instance, 'cells'));
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return ids.flatMap((id) => {
    const runtime = pids.find((pid) =>
      new RegExp(`crun\\x00.*\\x00run\\x00.*\\x00${id}\\x00$`).test(read(pid, 'cmdline')),
    );
    const init = pids.find(
      (pid) => read(pid, 'cgroup').includes(`/${id}/`) && /^NSpid:\t\d+\t1$/m.test(read(pid, 'status')),
    );
    return runtime === undefined || init === undefined
      ? []
      : [
          {
            folder: join(stateDirectory, instance, 'cells', id),
            runtime: Number(runtime),
            init: Number(init),
          },
        ];
  });
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
