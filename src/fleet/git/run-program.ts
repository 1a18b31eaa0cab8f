import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { constants } from 'node:os';
import { readOutcome } from '../../cells/read-outcome.ts';
import type { ExecOutcome } from '../../core/exec.ts';
import { CappedBytes } from '../../lib/capped-bytes.ts';

export interface ProgramOptions {
  readonly cwd: string;
  /** All of it: nothing of our own environment is handed on. */
  readonly env: Readonly<Record<string, string>>;
  readonly input?: Uint8Array | string;
  /** Stdin is this file. */
  readonly inputFile?: string;
  /** More on stdout ends the program. */
  readonly limitBytes: number;
  /** Stdout is counted and not kept. */
  readonly discard?: boolean;
  readonly timeoutMs: number;
}

export interface ProgramResult {
  /** As that of a program in a cell. */
  readonly code: number;
  readonly stdout: Buffer;
  readonly stdoutBytes: number;
  readonly stderr: string;
  /** Why we ended it. `stdout` has what came until then, at most the limit. */
  readonly ended: 'limit' | 'timeout' | undefined;
}

const STDERR_BYTES = 64 * 1024;

/** Runs a program of the host to its end. Arguments are a list: nothing passes through a shell. */
export function runProgram(
  argv: readonly [string, ...string[]],
  options: ProgramOptions,
): Promise<ProgramResult> {
  const [program, ...rest] = argv;
  const { cwd, env, input, inputFile, limitBytes, discard = false, timeoutMs } = options;
  return new Promise((resolve, reject) => {
    const stdin = inputFile === undefined ? 'pipe' : openSync(inputFile, 'r');
    const child = spawn(program, rest, { cwd, env, stdio: [stdin, 'pipe', 'pipe'] });
    if (typeof stdin === 'number') closeSync(stdin);
    const stdout = new CappedBytes(discard ? 0 : limitBytes);
    const stderr = new CappedBytes(STDERR_BYTES);
    let ended: ProgramResult['ended'];
    const end = (why: 'limit' | 'timeout'): void => {
      ended ??= why;
      child.kill('SIGKILL');
    };
    const timer = setTimeout(() => end('timeout'), timeoutMs);
    // A program may end without reading all of its input.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input ?? '');
    child.stdout?.on('data', (chunk: Buffer) => {
      stdout.push(chunk);
      if (stdout.total > limitBytes) end('limit');
    });
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({
        code: readOutcome(toOutcome(ended, code, signal)).exitCode,
        stdout: Buffer.from(stdout.bytes().buffer),
        stdoutBytes: stdout.total,
        stderr: stderr.text(),
        ended,
      });
    });
  });
}

function toOutcome(
  ended: ProgramResult['ended'],
  code: number | null,
  signal: NodeJS.Signals | null,
): ExecOutcome {
  if (ended !== undefined)
    return { kind: 'limit', limit: ended === 'timeout' ? 'wallTimeMs' : 'outputBytes' };
  if (signal !== null) return { kind: 'signalled', signal: constants.signals[signal] };
  return { kind: 'exited', code: code ?? 0 };
}
