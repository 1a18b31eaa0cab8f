import type { CellOwner, CellSpec } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';

/** Above it are ids that mean nobody. */
const HIGHEST = 2 ** 32 - 3;

/** SECURITY: nothing in a cell is root of the host, not even by its group, whoever asks for it. */
export function requireOwner({ owner, workspace }: CellSpec): CellOwner | undefined {
  if (owner === undefined) return undefined;
  const { uid, gid } = owner;
  if (uid === 0 || gid === 0)
    throw new HotcellError('POLICY_UNENFORCEABLE', 'the programs of a cell are never root of the host', {
      hint: 'Give the folders to another user and group, and name these.',
    });
  if (![uid, gid].every((id) => Number.isInteger(id) && id > 0 && id <= HIGHEST))
    throw new HotcellError('INTERNAL', `${uid}:${gid} are not ids of a user and a group`);
  if (workspace !== undefined)
    throw new HotcellError('INTERNAL', 'a cell with a workspace has the owner that the workspace has');
  return owner;
}
