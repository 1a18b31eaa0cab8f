import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { codeOfSignal, TIMEOUT_CODE } from '../../core/exit-code.ts';

export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** Enough to find the helper programs of a Linux system; nothing else of our environment is handed on. */
export const HELPER_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  LC_ALL: 'C',
};

/**
 * Runs a helper program to its end. Arguments are a list: nothing passes through a shell.
 * All three streams are pipes, never /dev/null: crun gives its standard streams to the cell's user with fchown,
 * and would change the owner of the host's /dev/null.
 */
export function runCommand(
  argv: readonly [string, ...string[]],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const [program, ...rest] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, rest, {
      env: options.env ?? HELPER_ENV,
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.timeoutMs === undefined ? {} : { timeout: options.timeoutMs, killSignal: 'SIGKILL' }),
    });
    child.on('error', reject);
    // Then it has no streams either where there are no descriptors left, and the error comes in a moment.
    if (child.pid === undefined) return;
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdin.on('error', () => {});
    child.stdin.end();
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('close', (code, signal) => {
      // Nobody but its own clock kills it.
      resolve({
        code: signal !== null && child.killed ? TIMEOUT_CODE : toExitCode(code, signal),
        stdout: Buffer.concat(stdout).toString(),
        stderr: Buffer.concat(stderr).toString(),
      });
    });
  });
}

/** Of a child: it has the one or the other. */
export function toExitCode(code: number | null, signal: NodeJS.Signals | null): number {
  return signal === null ? (code ?? 0) : codeOfSignal(constants.signals[signal]);
}
