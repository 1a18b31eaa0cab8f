import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { CellOwner } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';

/**
 * gVisor looks for what it mounts with no more rights than the cell has, and does not say so when it finds nothing. The
 * other runtimes open it before they give up their own.
 */
export async function requireSearchableWay(path: string, { uid, gid }: CellOwner): Promise<void> {
  const folder = dirname(path);
  const info = await stat(folder);
  const needed = info.gid === gid ? 0o010 : 0o001;
  if (info.uid !== uid && (info.mode & needed) === 0)
    throw new HotcellError(
      'CELL_START_FAILED',
      `gVisor cannot get to ${path}: cells may not search ${folder}`,
      {
        hint: `Use the runtime crun or runc, another place, or: chmod o+x ${folder}`,
      },
    );
  if (folder !== dirname(folder)) await requireSearchableWay(folder, { uid, gid });
}
