import type { CellSpec } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { inspectFolders, planFolders } from '../linux/bound-folders.ts';
import { requireOwner } from '../linux/cell-owner.ts';

/**
 * Can this engine give the cell the folders of the host that it is to work in, as their owner? Folders that are only read,
 * each at a place of its own, are left to the engine.
 */
export async function requireHostFolders(
  spec: CellSpec,
  engine: { readonly local: boolean; readonly mapsUsers: boolean },
): Promise<void> {
  if (requireOwner(spec) !== undefined && engine.mapsUsers)
    throw new HotcellError(
      'POLICY_UNENFORCEABLE',
      'this engine maps users: programs of its cells cannot have the id of somebody of the host',
      { hint: 'Use an engine that runs as root and without userns-remap, or the oci driver.' },
    );
  const planned = planFolders(spec.folders ?? []);
  if (planned.every(({ outer, writable }) => outer === undefined && writable !== true)) return;
  if (!engine.local)
    throw new HotcellError(
      'POLICY_UNENFORCEABLE',
      'this engine is on another machine: its cells cannot work in folders of this one',
      { hint: 'Use an engine on this machine, or the oci driver.' },
    );
  await inspectFolders(planned);
}
