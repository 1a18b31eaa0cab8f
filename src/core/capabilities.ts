import type { Cell, Freezer, LastingCell } from './cell.ts';
import type { Driver, LastingCells } from './driver.ts';
import { HotcellError } from './errors.ts';
import type { Exec, LastingExec } from './exec.ts';

/** What not every driver can do is there or not; whoever needs it is told who lacks it. */
export function requireLasting({ name, lasting }: Driver): LastingCells {
  if (lasting !== undefined) return lasting;
  throw new HotcellError('SESSIONS_UNAVAILABLE', `cells of the ${name} driver end with the server`);
}

export function requireLastingCell({ name, lasting }: Cell): LastingCell {
  if (lasting !== undefined) return lasting;
  throw new HotcellError('INTERNAL', `cell ${name} was not made to last`);
}

export function requireLastingExec({ lasting }: Exec): LastingExec {
  if (lasting !== undefined) return lasting;
  throw new HotcellError('INTERNAL', 'this command is not in a cell that was made to last');
}

export function requireFreezer({ isolation, freezer }: Cell): Freezer {
  if (freezer !== undefined) return freezer;
  throw new HotcellError('POLICY_UNENFORCEABLE', `cells of the ${isolation.driver} driver cannot be frozen`);
}
