import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { HotcellError } from '../../core/errors.ts';
import { HELPER_ENV } from '../process/run-command.ts';
import { touchReader } from './channel.ts';

/** Mounts that must be hidden from the runtime, and whether we may do so as root or need a user namespace for it. */
export interface HiddenMounts {
  readonly paths: readonly string[];
  readonly rootless: boolean;
}

/** A runtime that stays with its container. */
export interface RuntimeProcess {
  /** Resolves when the process and everything that shares its streams has ended. */
  readonly ended: Promise<void>;
  /** What it said, which is only something when it failed. */
  words(): string;
  /** Lets `ended` resolve if it is gone already, or will never come. */
  touch(): void;
  /** Whatever becomes of it is not our business any more. */
  leave(): void;
}

const SCRIPT = fileURLToPath(new URL('keeper.bash', import.meta.url));
const WORDS_KEPT = 4096;

/**
 * A small process that starts the runtimes: forking the server itself takes milliseconds of its event loop.
 * It also holds the mount namespace in which some mounts are hidden from the runtime, if that is needed; the host
 * sees no change. It ends with us, also after kill -9, because it waits for the end of its standard input.
 */
export class Keeper implements AsyncDisposable {
  readonly #hidden: HiddenMounts | undefined;
  readonly #logs = new Map<string, Socket>();
  #process: ChildProcessWithoutNullStreams;
  #reviving: Promise<void> | undefined;
  #closed = false;

  private constructor(hidden: HiddenMounts | undefined, child: ChildProcessWithoutNullStreams) {
    this.#hidden = hidden;
    this.#process = this.#follow(child);
  }

  static async open(hidden: HiddenMounts | undefined): Promise<Keeper> {
    return new Keeper(hidden, await spawnKeeper(hidden));
  }

  #follow(child: ChildProcessWithoutNullStreams): ChildProcessWithoutNullStreams {
    // What it had not started yet will never come: whoever waits for it learns that.
    child.on('exit', () => this.#logs.forEach(touchReader));
    child.stdin.on('error', () => {});
    return child;
  }

  /** What to put before a command that others start, so that it runs where the keeper does. */
  async enter(): Promise<readonly string[]> {
    await this.revive();
    const { pid } = this.#process;
    return this.#hidden === undefined || pid === undefined ? [] : toPrefix(this.#hidden, pid);
  }

  /** One that somebody has killed gets a successor; the runtimes that it has started do not need it. */
  async revive(): Promise<void> {
    if (!this.ended || this.#closed) return;
    this.#reviving ??= spawnKeeper(this.#hidden)
      .then((child) => {
        this.#process = this.#follow(child);
      })
      .finally(() => (this.#reviving = undefined));
    await this.#reviving;
  }

  /** `log` is a FIFO that nobody else uses. */
  start(words: readonly string[], log: string): RuntimeProcess {
    const runtime = this.follow(log);
    this.#process.stdin.write(`${[log, ...words].join('\0')}\0\0`);
    if (this.ended) runtime.touch();
    return runtime;
  }

  /** A runtime that was started before, by us or by another keeper, with this FIFO. */
  follow(log: string): RuntimeProcess {
    let said = '';
    const reader = new Socket({
      fd: openSync(log, constants.O_RDONLY | constants.O_NONBLOCK),
      readable: true,
      writable: false,
    });
    this.#logs.set(log, reader);
    reader.on('error', () => {});
    reader.on('data', (bytes: Buffer) => {
      said = (said + bytes.toString()).slice(-WORDS_KEPT);
    });
    const ended = new Promise<void>((resolve) => {
      reader.on('close', () => {
        this.#logs.delete(log);
        resolve();
      });
    });
    return {
      ended,
      words: () => said,
      touch: () => touchReader(reader, log),
      leave: () => void reader.destroy(),
    };
  }

  /** Nothing can be started any more. */
  get ended(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#reviving?.catch(() => {});
    if (this.ended) return;
    const closed = once(this.#process, 'close');
    this.#process.ref();
    this.#process.kill('SIGKILL');
    await closed;
  }
}

async function spawnKeeper(hidden: HiddenMounts | undefined): Promise<ChildProcessWithoutNullStreams> {
  const [program = '', ...words] = toCommand(hidden);
  const child = spawn(program, words, { env: HELPER_ENV, stdio: ['pipe', 'pipe', 'pipe'] });
  const errors: string[] = [];
  // For good: an error that nobody listens for would end the server.
  child.on('error', ({ message }) => errors.push(message));
  if (child.pid === undefined) await once(child, 'error');
  // Only now, because without descriptors left it has no streams either.
  if (child.pid === undefined || !(await isReady(child, errors))) {
    throw new HotcellError('DRIVER_UNAVAILABLE', `cannot start the keeper: ${errors.join('').trim()}`);
  }
  child.unref();
  return child;
}

async function isReady(child: ChildProcessWithoutNullStreams, errors: string[]): Promise<boolean> {
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
  return Promise.race([once(child.stdout, 'data').then(() => true), once(child, 'close').then(() => false)]);
}

function toCommand(hidden: HiddenMounts | undefined): string[] {
  const serve = 'echo ready; exec bash "$0"';
  if (hidden === undefined) return ['sh', '-c', serve, SCRIPT];
  // Paths come from the mount table, and as arguments: they are never part of the script.
  const hide = hidden.rootless
    ? 'for path; do mount -t tmpfs none "$path" || exit 1; done'
    : 'for path; do umount "$path" || exit 1; done';
  // Slave: what is mounted on the host later, below a shared mount, must be seen here, or cells would get the bare folder.
  const flags = hidden.rootless ? ['-r', '-m'] : ['-m', '--propagation', 'slave'];
  return ['unshare', ...flags, 'sh', '-c', `${hide}; ${serve}`, SCRIPT, ...hidden.paths];
}

function toPrefix(hidden: HiddenMounts, pid: number): string[] {
  const mount = `--mount=/proc/${pid}/ns/mnt`;
  return hidden.rootless
    ? ['nsenter', `--user=/proc/${pid}/ns/user`, mount, '--preserve-credentials', '--']
    : ['nsenter', mount, '--'];
}
