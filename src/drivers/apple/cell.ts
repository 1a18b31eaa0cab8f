import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import {
  fillRequest,
  withFolders,
  type Cell,
  type CellSpec,
  type CellUsage,
  type Isolation,
  type PathsInCell,
} from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecRequest } from '../../core/exec.ts';
import { AgentLink } from '../agent/agent-link.ts';
import { KnownCell } from '../known-cell.ts';
import { PATHS_IN_CELL, WORKDIR_IN_CELL } from '../linux/cell-paths.ts';
import { isNameTaken, isServicesDown, toServicesDown, toStartError } from './cli-words.ts';

const WORDS_KEPT = 4096;
/** The services write whatever the first process prints into a log on the disk of the host, and nobody bounds that. */
const LOGGED_BYTES = 1024 ** 3;

export interface AppleCellParts {
  readonly id: string;
  readonly spec: CellSpec;
  readonly image: string;
  readonly isolation: Isolation;
  /** The call that is the cell: its streams are those of the agent. */
  readonly call: ChildProcessWithoutNullStreams;
  usage(): Promise<CellUsage>;
  /** Removes the container, running or not; rejects when that cannot be done now. */
  remove(): Promise<void>;
}

/**
 * A container whose PID 1 is the agent. One call of the CLI carries everything; no other is needed to run. It does not
 * last: its input ends with the call that started it, and nothing can be attached to it again.
 */
export class AppleCell extends KnownCell implements Cell {
  readonly workdir = WORKDIR_IN_CELL;
  readonly main: Exec | undefined;
  readonly #gone = Promise.withResolvers<void>();
  readonly gone = this.#gone.promise;
  readonly #parts: AppleCellParts;
  readonly #link: AgentLink;
  readonly #places: PathsInCell;
  #words = '';
  #heard = 0;
  #isReady = false;
  #removal: Promise<void> | undefined;

  constructor(parts: AppleCellParts) {
    super({ ...parts, name: parts.spec.name });
    this.#parts = parts;
    const { call, spec } = parts;
    this.#places = withFolders(PATHS_IN_CELL, spec.folders);
    this.#link = new AgentLink({
      cellName: spec.name,
      write: (bytes) => void call.stdin.write(bytes),
      giveUp: () => this.#remove(),
    });
    call.stdout.on('data', (bytes: Buffer) => this.#hear(bytes));
    call.stderr.on(
      'data',
      (bytes: Buffer) => (this.#words = (this.#words + bytes.toString()).slice(-WORDS_KEPT)),
    );
    call.on('error', (error) => this.#hungUp(error.message));
    call.on('close', () => this.#hungUp(this.#words.trim()));
    this.main =
      spec.main === undefined
        ? undefined
        : this.#link.start(fillRequest(spec.main, this.#places, {}), { alone: true });
  }

  /** Resolves when the agent has said that it is there. */
  async ready(): Promise<void> {
    await this.#link.untilReady();
    this.#isReady = true;
  }

  #hear(bytes: Buffer): void {
    this.#heard += bytes.length;
    this.#link.receive(bytes);
    if (this.#heard < LOGGED_BYTES) return;
    this.#link.close(
      new HotcellError('CELL_LOST', `cell ${this.name} has printed all that its log may hold`),
    );
    this.#remove().catch(() => {});
  }

  /** The call has ended: with the container, or because somebody killed it, and then the container is still there. */
  #hungUp(words: string): void {
    this.#link.close(this.#toEnd(words));
    // SECURITY: a container that had the name before is somebody else's.
    if (!this.#isReady && isNameTaken(words)) this.#removal ??= Promise.resolve(this.#gone.resolve());
    this.#remove().catch(() => {});
  }

  #toEnd(words: string): HotcellError {
    if (isServicesDown(words)) return toServicesDown(words);
    return this.#isReady || words === ''
      ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
      : toStartError(this.name, this.#parts.image, words);
  }

  async exec(request: ExecRequest): Promise<Exec> {
    if (this.main !== undefined) throw new HotcellError('INTERNAL', 'this cell was made for one program');
    return this.#link.start(fillRequest(request, this.#places, {}), { alone: false });
  }

  usage(): Promise<CellUsage> {
    return this.#parts.usage();
  }

  #remove(): Promise<void> {
    this.#removal ??= this.#parts.remove().finally(() => {
      const { call } = this.#parts;
      // Only now: killed before, it would leave the container running.
      if (call.exitCode === null && call.signalCode === null) call.kill('SIGKILL');
      for (const stream of [call.stdin, call.stdout, call.stderr]) stream.destroy();
      this.#gone.resolve();
    });
    return this.#removal;
  }

  async dispose(): Promise<void> {
    // What could not be removed is on the driver's list; the caller can do nothing about it.
    await this.#remove().catch(() => {});
  }
}
