import { statfs } from 'node:fs/promises';
import { WORKSPACE_IN_CELL, type Cell } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { WORKDIR_IN_CELL } from '../linux/cell-places.ts';

const PLACES = [WORKSPACE_IN_CELL, WORKDIR_IN_CELL];
const WORDS_KEPT = 1024;

/**
 * SECURITY: an engine that does not see what is mounted on our side (it is on another machine, or in a mount namespace of
 * its own) gives the cell the bare folder below, which has no bound. The cell says what it really got.
 */
export async function requireBoundWorkspace(cell: Cell, folder: string): Promise<void> {
  const [seen, { bsize, blocks }] = await Promise.all([askCell(cell), statfs(folder)]);
  const wanted = `${bsize} ${blocks}\n`.repeat(PLACES.length);
  if (seen === wanted) return;
  throw new HotcellError(
    'POLICY_UNENFORCEABLE',
    `cell ${cell.name} does not see the bounded file system of its workspace: the engine does not see our mounts`,
    {
      hint: 'Use an engine on this machine that was started outside of any mount namespace of its own.',
    },
  );
}

async function askCell(cell: Cell): Promise<string> {
  const exec = await cell.exec({ argv: ['stat', '-f', '-c', '%S %b', ...PLACES], env: {} });
  exec.closeStdin();
  let words = '';
  for await (const event of exec.events)
    if (event.type === 'stdout') words = (words + Buffer.from(event.bytes).toString()).slice(0, WORDS_KEPT);
  exec.forget();
  return words;
}
