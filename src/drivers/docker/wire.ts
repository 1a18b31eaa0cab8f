import { closeSync, constants, openSync } from 'node:fs';
import { chmod, mkdir, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError } from '../../core/errors.ts';
import { deadInstances, openInstance, type Instance } from '../process/instance.ts';
import { runCommand } from '../process/run-command.ts';

export const WIRE_IN_CELL = '/opt/hotcell/wire';
export const WIRE_FIFO = 'out';

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
/** What the agent said before its end is in the FIFO, and read at once. */
const LAST_WORDS_MS = 1000;

/**
 * What the agent of a worker says, past its stdout: the engine keeps what comes there, so that one is for people alone. A FIFO
 * on the host, in a folder that is mounted into the cell.
 */
export class Wire implements AsyncDisposable {
  readonly folder: string;
  readonly #instance: Instance;
  readonly #reader: Socket;
  readonly #closed: Promise<unknown>;
  /** Ours: without a writer that it has seen, a reader never comes to an end. */
  #writer: number | undefined;

  private constructor(instance: Instance, folder: string) {
    const path = join(folder, WIRE_FIFO);
    this.folder = folder;
    this.#instance = instance;
    this.#reader = new Socket({ fd: openSync(path, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
    this.#writer = openSync(path, O_WRONLY | O_NONBLOCK);
    this.#closed = new Promise((resolve) => this.#reader.on('close', resolve));
    this.#reader.on('error', () => {});
  }

  /** In a folder of its own, which is there only while the cell starts. */
  static async make(stateDirectory: string): Promise<Wire> {
    const instance = await openInstance(stateDirectory, { searched: false });
    const folder = join(instance.directory, 'wire');
    try {
      await mkdir(folder);
      await chmod(folder, 0o711);
      const { code, stderr } = await runCommand(['mkfifo', '-m', '622', join(folder, WIRE_FIFO)]);
      if (code !== 0) throw new HotcellError('DRIVER_UNAVAILABLE', `mkfifo failed: ${stderr.trim()}`);
      return new Wire(instance, folder);
    } catch (error) {
      await rm(instance.directory, { recursive: true, force: true });
      throw error;
    }
  }

  onData(take: (bytes: Buffer) => void): void {
    this.#reader.on('data', take);
  }

  /**
   * Precondition: the agent has opened it, or never will.
   * SECURITY: the programs of the cell are the same user as its agent, and could speak in its name if they found it.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#instance.directory, { recursive: true, force: true });
  }

  /** The container has ended. Resolves when all is read that its agent has said. */
  async end(): Promise<void> {
    if (this.#writer !== undefined) closeSync(this.#writer);
    this.#writer = undefined;
    await Promise.race([this.#closed, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    this.close();
  }

  close(): void {
    if (this.#writer !== undefined) closeSync(this.#writer);
    this.#writer = undefined;
    this.#reader.destroy();
  }
}

/** Removes what processes that are dead have left of cells that were starting. */
export async function removeDeadWires(stateDirectory: string): Promise<void> {
  for (const { directory } of await deadInstances(stateDirectory))
    await rm(directory, { recursive: true, force: true });
}
