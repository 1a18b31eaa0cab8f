import { readOutcome, type EndReason } from '../../cells/read-outcome.ts';
import { runToEnd, type Attention } from '../../cells/run-to-end.ts';
import type { Cell } from '../../core/cell.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { HeadTail } from '../../lib/head-tail.ts';

/** After being asked to end, a program has this long. */
const GRACE_MS = 10_000;
const KEPT_BYTES = 64 * 1024;

export interface RunOptions extends Attention {
  readonly input?: Uint8Array;
  /** Of each stream so much is kept, the beginning and the end. */
  readonly keptBytes?: number;
}

export interface RunResult {
  readonly reason: EndReason;
  /** As shells write it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one program in a cell to its end, and keeps what it says. Throws when the cell is lost. */
export async function runInCell(
  cell: Cell,
  request: ExecRequest,
  options: RunOptions = {},
): Promise<RunResult> {
  options.signal?.throwIfAborted();
  const { keptBytes = KEPT_BYTES } = options;
  const [stdout, stderr] = [new HeadTail(keptBytes), new HeadTail(keptBytes)];
  const { outcome, usage } = await runToEnd(cell, request, { graceMs: GRACE_MS, ...options, stdout, stderr });
  const { reason, exitCode } = readOutcome(outcome, usage);
  return { reason, code: exitCode, stdout: stdout.text().text, stderr: stderr.text().text };
}
