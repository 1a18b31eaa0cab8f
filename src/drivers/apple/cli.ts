import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { homedir, tmpdir } from 'node:os';
import { HotcellError } from '../../core/errors.ts';
import { errnoOf } from '../../lib/errno.ts';
import { BuildLog } from '../images/build-log.ts';
import { HELPER_ENV, toExitCode, type CommandResult } from '../process/run-command.ts';
import type { Words } from './argv.ts';
import { CliRefusal, toCallError } from './cli-words.ts';

/** `list` has a deadline of ten seconds of its own; most other calls have none and would wait for ever. */
const ANSWER_MS = 15_000;
const STDOUT_KEPT = 16 * 1024 * 1024;
const STDERR_KEPT = 8 * 1024;

export interface Following {
  /** The longest time without a word. */
  readonly silenceMs: number;
  onLine(line: string): void;
}

/** The `container` command. Every call has a deadline, after which its process is killed. */
export class ContainerCli {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** What the call printed. Rejects with a refusal in the words of the CLI, or with DRIVER_UNAVAILABLE. */
  async call(what: string, words: Words, deadlineMs = ANSWER_MS): Promise<string> {
    const { code, stdout, stderr } = await this.ask(what, words, deadlineMs);
    if (code !== 0) throw toCallError(what, code, stderr);
    return stdout;
  }

  /** As `call`, for those who read the exit code themselves. */
  ask(what: string, words: Words, deadlineMs = ANSWER_MS): Promise<CommandResult> {
    const child = this.start(words);
    child.stdin.end();
    return new Promise((resolve, reject) => {
      const give = (settle: () => void): void => {
        clearTimeout(timer);
        drop(child);
        settle();
      };
      const timer = setTimeout(() => give(() => reject(toHung(what, deadlineMs))), deadlineMs);
      const stdout: Buffer[] = [];
      let [length, stderr] = [0, ''];
      child.stdout.on('data', (bytes: Buffer) => {
        length += bytes.length;
        if (length > STDOUT_KEPT) give(() => reject(toTooMuch(what)));
        else stdout.push(bytes);
      });
      child.stderr.on('data', (bytes: Buffer) => (stderr = (stderr + bytes.toString()).slice(-STDERR_KEPT)));
      child.on('error', (error) => give(() => reject(this.#toSpawnError(error))));
      child.on('close', (code, signal) =>
        give(() => {
          if (code === null) reject(toKilled(what, signal));
          else resolve({ code, stdout: Buffer.concat(stdout).toString(), stderr });
        }),
      );
    });
  }

  /** A call that takes as long as it takes and says now and then how far it is; resolves with its last lines. */
  follow(what: string, words: Words, following: Following): Promise<readonly string[]> {
    const child = this.start(words);
    child.stdin.end();
    const { silenceMs } = following;
    const log = new BuildLog((line) => following.onLine(line));
    return new Promise((resolve, reject) => {
      const give = (settle: () => void): void => {
        clearTimeout(timer);
        drop(child);
        settle();
      };
      const timer = setTimeout(() => give(() => reject(toHung(what, silenceMs))), silenceMs);
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (bytes: Buffer) => {
          timer.refresh();
          log.write(bytes.toString());
        });
      }
      child.on('error', (error) => give(() => reject(this.#toSpawnError(error))));
      child.on('close', (code, signal) =>
        give(() => {
          if (code === 0) resolve(log.lastLines);
          else if (code === null) reject(toKilled(what, signal));
          else reject(toCallError(what, code, log.lastLines.join('\n')));
        }),
      );
    });
  }

  /** A call that stays. SECURITY: words are a list, and of our own environment it gets next to nothing. */
  start(words: Words): ChildProcessWithoutNullStreams {
    const child = spawn(this.path, words, {
      env: {
        ...HELPER_ENV,
        PATH: `/opt/homebrew/bin:${HELPER_ENV['PATH']}`,
        HOME: homedir(),
        TMPDIR: tmpdir(),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin.on('error', () => {});
    return child;
  }

  #toSpawnError(error: Error): HotcellError {
    const isMissing = errnoOf(error) === 'ENOENT';
    return new HotcellError(
      'DRIVER_UNAVAILABLE',
      isMissing ? `there is no program ${this.path}` : `${this.path} cannot be started: ${error.message}`,
      { hint: 'Install the package of github.com/apple/container, or correct apple.cli.', cause: error },
    );
  }
}

/** It may have children of its own that hold its streams; nobody waits for those. */
function drop(child: ChildProcessWithoutNullStreams): void {
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
}

function toHung(what: string, ms: number): HotcellError {
  return new HotcellError(
    'DRIVER_UNAVAILABLE',
    `container did not answer within ${Math.round(ms / 1000)} seconds when asked to ${what}`,
    { hint: 'Start its services anew: container system stop && container system start' },
  );
}

/** Whoever killed it may not do so again. */
function toKilled(what: string, signal: NodeJS.Signals | null): CliRefusal {
  return new CliRefusal(what, toExitCode(null, signal), `the command was killed by ${signal}`);
}

function toTooMuch(what: string): HotcellError {
  return new HotcellError('DRIVER_UNAVAILABLE', `container said too much when asked to ${what}`);
}
