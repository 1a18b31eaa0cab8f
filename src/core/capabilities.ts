import type { Driver, LastingCells } from './driver.ts';
import { HotcellError } from './errors.ts';

/** What not every driver can do is there or not; whoever needs it is told who lacks it. */
export function requireLasting({ name, lasting }: Driver): LastingCells {
  if (lasting !== undefined) return lasting;
  throw new HotcellError('SESSIONS_UNAVAILABLE', `cells of the ${name} driver end with the server`);
}
