import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { HotcellError } from '../../core/errors.ts';
import { HELPER_ENV } from '../process/run-command.ts';

/** Mounts that must be hidden from the runtime, and whether we may do so as root or need a user namespace for it. */
export interface HiddenMounts {
  readonly paths: readonly string[];
  readonly rootless: boolean;
}

/**
 * Holds a mount namespace in which some mounts are gone, for the runtime alone; the host sees no change.
 * The holder ends with us, also after kill -9, because it waits for the end of its standard input.
 */
export class MountNamespace implements AsyncDisposable {
  readonly #holder: ChildProcess;
  /** What to put before a command so that it runs in there. */
  readonly prefix: readonly string[];

  private constructor(holder: ChildProcess, prefix: readonly string[]) {
    this.#holder = holder;
    this.prefix = prefix;
  }

  static async open(hidden: HiddenMounts): Promise<MountNamespace> {
    // Paths come from the mount table, and as arguments: they are never part of the script.
    const hide = hidden.rootless
      ? 'for path; do mount -t tmpfs none "$path" || exit 1; done'
      : 'for path; do umount "$path" || exit 1; done';
    const holder = spawn(
      'unshare',
      [
        ...(hidden.rootless ? ['-r'] : []),
        '-m',
        'sh',
        '-c',
        `${hide}; echo ready; read _`,
        'sh',
        ...hidden.paths,
      ],
      { env: HELPER_ENV, stdio: ['pipe', 'pipe', 'pipe'] },
    );
    const errors: string[] = [];
    holder.stderr.on('data', (chunk: Buffer) => errors.push(chunk.toString()));
    const started = await Promise.race([
      once(holder.stdout, 'data').then(() => true),
      once(holder, 'close').then(() => false),
      once(holder, 'error').then(() => false),
    ]);
    if (!started || holder.pid === undefined) {
      throw new HotcellError(
        'DRIVER_UNAVAILABLE',
        `cannot make a mount namespace: ${errors.join('').trim()}`,
      );
    }
    holder.unref();
    const { pid } = holder;
    const enter = hidden.rootless
      ? [
          'nsenter',
          `--user=/proc/${pid}/ns/user`,
          `--mount=/proc/${pid}/ns/mnt`,
          '--preserve-credentials',
          '--',
        ]
      : ['nsenter', `--mount=/proc/${pid}/ns/mnt`, '--'];
    return new MountNamespace(holder, enter);
  }

  /** The holder is gone: nothing can be started in the namespace any more. */
  get ended(): boolean {
    return this.#holder.exitCode !== null || this.#holder.signalCode !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.ended) return;
    const closed = once(this.#holder, 'close');
    this.#holder.ref();
    this.#holder.kill('SIGKILL');
    await closed;
  }
}
