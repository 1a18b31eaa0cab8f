import type { CellSpec } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';

const OTHERS = 'Use the oci or the docker driver; `hotcell doctor` says what they need.';

/** For drivers that cannot make every cell: refuses what they have no trait or capability for. */
export function refuseSpec(spec: CellSpec, { name, traits, lasting }: Driver): void {
  if ((spec.lasting ?? spec.workspace) !== undefined && lasting === undefined)
    throw new HotcellError('SESSIONS_UNAVAILABLE', `cells of the ${name} driver end with the server`, {
      hint: OTHERS,
    });
  if (isWorker(spec) && !traits.workers)
    throw new HotcellError(
      'POLICY_UNENFORCEABLE',
      `the ${name} driver cannot let the programs of a cell work in folders of the host`,
      { hint: OTHERS },
    );
}

function isWorker({ kind, owner, folders = [] }: CellSpec): boolean {
  return kind === 'worker' || owner !== undefined || folders.some(({ writable }) => writable === true);
}

export function refuseTerminal({ terminal }: ExecRequest, { name, traits }: Driver): void {
  if (terminal !== undefined && !traits.terminals)
    throw new HotcellError('POLICY_UNENFORCEABLE', `commands of the ${name} driver get no terminal`);
}
