import { statfs } from 'node:fs/promises';
import { WORKSPACE_IN_CELL, type Cell } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { runToEnd } from './run-to-end.ts';

/** What a cell says when it sees the folders that we mean. */
export interface Sight {
  readonly ask: ExecRequest;
  /** The first lines of its answer. */
  readonly answer: readonly string[];
}

/** Of a workspace: the cell finds the bounded file system there and at its workdir, not the bare folder below it. */
export async function sightOfWorkspace(folder: string): Promise<Sight> {
  const { bsize, blocks } = await statfs(folder);
  const size = `${bsize} ${blocks}`;
  const ask = { argv: ['stat', '-f', '-c', '%S %b', WORKSPACE_IN_CELL, '{workdir}'] as const, env: {} };
  return { ask, answer: [size, size] };
}

const KEPT_BYTES = 16 * 1024;
const TIME_MS = 60_000;

/**
 * SECURITY: an engine that does not see what we see (it is on another machine, or in a mount namespace of its own) gives the
 * cell some other folder of the same name, or one without the bound that we mounted there. The cell says what it really got.
 * Returns the lines after the answer.
 */
export async function requireSight(
  cell: Pick<Cell, 'name' | 'exec'>,
  { ask, answer }: Sight,
): Promise<string[]> {
  const stdout = new CappedBytes(KEPT_BYTES);
  await runToEnd(cell, ask, { timeMs: TIME_MS, stdout });
  const lines = stdout.text().split('\n');
  if (answer.every((line, index) => lines[index] === line)) return lines.slice(answer.length);
  throw new HotcellError(
    'POLICY_UNENFORCEABLE',
    `cell ${cell.name} does not see the folders of this machine as they are mounted here`,
    { hint: 'Use an engine on this machine, outside of any mount namespace of its own, or the oci driver.' },
  );
}
