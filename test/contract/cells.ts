import { randomUUID } from 'node:crypto';
import type { Cell, CellSpec } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import type { Exec, ExecOutcome, ExecRequest, Usage } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { listProcesses } from '../support/leftovers.ts';

export interface Subject {
  readonly driver: Driver;
}

export interface Finished {
  readonly stdout: string;
  readonly stderr: string;
  readonly outcome: ExecOutcome;
  readonly usage: Usage;
}

export const MiB = 1024 * 1024;

export function specOf(main: ExecRequest | undefined, limits: Partial<Limits> = {}): CellSpec {
  return {
    name: `contract-${randomUUID().slice(0, 8)}`,
    kind: 'run',
    limits: { ...DEFAULT_LIMITS, ...limits },
    ...(main === undefined ? {} : { main }),
  };
}

export const bash = (script: string, env: Record<string, string> = {}): ExecRequest => ({
  argv: ['bash', '-c', script],
  env,
});
export const python = (script: string): ExecRequest => ({ argv: ['python3', '-u', '-c', script], env: {} });

export async function finish(exec: Exec): Promise<Finished> {
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  for await (const event of exec.events) {
    if (event.type === 'stdout') out.push(Buffer.from(event.bytes));
    else if (event.type === 'stderr') err.push(Buffer.from(event.bytes));
    else {
      return {
        stdout: Buffer.concat(out).toString(),
        stderr: Buffer.concat(err).toString(),
        outcome: event.outcome,
        usage: event.usage,
      };
    }
  }
  throw new Error('no exit event');
}

export function mainOf(cell: Cell): Exec {
  if (cell.main === undefined) throw new Error('the cell has no main program');
  return cell.main;
}

/** Makes a cell for one program, gives it its input and waits for its end. */
export async function runMain(
  driver: Driver,
  main: ExecRequest,
  options: { limits?: Partial<Limits>; stdin?: string } = {},
): Promise<Finished> {
  const cell = await driver.create(specOf(main, options.limits));
  try {
    const program = mainOf(cell);
    if (options.stdin !== undefined) program.write(Buffer.from(options.stdin));
    program.closeStdin();
    return await finish(program);
  } finally {
    await cell.dispose();
  }
}

/** Reads until a line is complete, so that a test knows the program has come that far. */
export async function readLine(exec: Exec): Promise<string> {
  let text = '';
  for await (const event of exec.events) {
    if (event.type === 'stdout') text += Buffer.from(event.bytes).toString();
    if (text.includes('\n')) return text;
  }
  throw new Error(`ended before a line was complete: ${text}`);
}

export const survivors = (marker: string): string[] =>
  listProcesses().filter((line) => line.includes(marker));
