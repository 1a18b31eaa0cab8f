import { readOutcome, type EndReason } from '../../cells/read-outcome.ts';
import { runToEnd, type Attention } from '../../cells/run-to-end.ts';
import type { Cell } from '../../core/cell.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { Redactor } from '../environment/redactor.ts';
import { HeadTail } from '../../lib/head-tail.ts';

/** After being asked to end, a program has this long. */
const GRACE_MS = 10_000;
const KEPT_BYTES = 64 * 1024;

export interface RunOptions extends Attention {
  readonly input?: Uint8Array;
  /** Of each stream so much is kept, the beginning and the end. */
  readonly keptBytes?: number;
  /** SECURITY: takes out what nobody may see or keep of a stream, before any of it is cut. */
  readonly makeRedactor?: () => Redactor;
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
  const { keptBytes = KEPT_BYTES, makeRedactor = () => new Redactor([]) } = options;
  const kept = { stdout: new HeadTail(keptBytes), stderr: new HeadTail(keptBytes) };
  const redactors = { stdout: makeRedactor(), stderr: makeRedactor() };
  const pass = (stream: keyof typeof kept, bytes: Uint8Array): void | Promise<void> => {
    if (bytes.length === 0) return undefined;
    kept[stream].push(bytes);
    return options.onOutput?.(stream, bytes);
  };
  const { outcome, usage } = await runToEnd(cell, request, {
    graceMs: GRACE_MS,
    ...options,
    onOutput: (stream, bytes) => pass(stream, redactors[stream].push(bytes)),
  });
  await pass('stdout', redactors.stdout.flush());
  await pass('stderr', redactors.stderr.flush());
  const { reason, exitCode } = readOutcome(outcome, usage);
  return { reason, code: exitCode, stdout: kept.stdout.text().text, stderr: kept.stderr.text().text };
}
