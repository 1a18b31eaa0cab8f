import type { Duplex } from 'node:stream';
import { fillRequest, type Cell, type CellSpec, type Isolation } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecRequest } from '../../core/exec.ts';
import { AgentLink } from '../agent/agent-link.ts';
import { PLACES, WORKDIR_IN_CELL } from '../linux/cell-places.ts';
import { ExecFiles } from '../process/exec-files.ts';
import { listen } from './attached-stream.ts';

const WORDS_KEPT = 2048;

export interface DockerCellParts {
  readonly id: string;
  readonly name: string;
  readonly spec: CellSpec;
  readonly isolation: Isolation;
  /** The streams of the container, attached before its start. */
  readonly stream: Duplex;
  readonly limitMemory: Cell['limitMemory'];
  /** Asks, of a container that has ended, whether memory ran out; undefined where the agent would have told. */
  readonly wasOutOfMemory: (() => Promise<boolean>) | undefined;
  /** The volume with the guest files is empty. */
  onGuestMissing(): void;
  /** Removes the container, running or not; rejects when the engine does not do it. */
  remove(): Promise<void>;
}

/** A container whose PID 1 is the agent. One connection carries everything; no call of the engine is needed to run. */
export class DockerCell implements Cell {
  readonly workdir = WORKDIR_IN_CELL;
  readonly main: Exec | undefined;
  readonly gone: Promise<void>;
  readonly files = new ExecFiles((request) => this.exec(request));
  readonly #parts: DockerCellParts;
  readonly #link: AgentLink;
  #words = '';
  #removal: Promise<void> | undefined;
  #markGone: () => void = () => {};

  /** Precondition: the container runs. */
  constructor(parts: DockerCellParts) {
    this.#parts = parts;
    const { name, spec, stream } = parts;
    this.gone = new Promise((resolve) => (this.#markGone = resolve));
    this.#link = new AgentLink({
      cellName: name,
      write: (bytes) => void stream.write(bytes),
      giveUp: () => this.#remove(),
    });
    void listen(stream, (source, bytes) => {
      if (source === 'stdout') this.#link.receive(bytes);
      else this.#words = (this.#words + bytes.toString()).slice(-WORDS_KEPT);
    })
      .then(() => this.#parts.wasOutOfMemory?.())
      .then((outOfMemory) => this.#hungUp(outOfMemory === true));
    this.main =
      spec.main === undefined
        ? undefined
        : this.#link.start(fillRequest(spec.main, PLACES, {}), { alone: true });
  }

  get id(): string {
    return this.#parts.id.slice(0, 12);
  }

  get name(): string {
    return this.#parts.name;
  }

  get limitMemory(): Cell['limitMemory'] {
    return this.#parts.limitMemory;
  }

  get isolation(): Isolation {
    return this.#parts.isolation;
  }

  /** Resolves when the agent has said that it is there. */
  ready(): Promise<void> {
    return this.#link.untilReady();
  }

  async exec(request: ExecRequest): Promise<Exec> {
    if (this.main !== undefined) throw new HotcellError('INTERNAL', 'this cell was made for one program');
    return this.#link.start(fillRequest(request, PLACES, {}), { alone: false });
  }

  /** The container has ended, or the engine has. */
  #hungUp(outOfMemory: boolean): void {
    const words = this.#words.trim();
    if (words.includes('agent.pl')) this.#parts.onGuestMissing();
    this.#link.close(
      words === ''
        ? new HotcellError('CELL_LOST', `cell ${this.name} was ended from outside`)
        : new HotcellError('CELL_START_FAILED', `cell ${this.name} did not start: ${words}`),
      { outOfMemory },
    );
    this.#remove().catch(() => {});
  }

  /** Gives up a cell that cannot be reached; whoever waits for it learns why. */
  abandon(error: HotcellError): void {
    this.#link.close(error);
    this.#parts.stream.destroy();
  }

  #remove(): Promise<void> {
    this.#removal ??= this.#parts.remove().finally(() => {
      this.#parts.stream.destroy();
      this.#markGone();
    });
    return this.#removal;
  }

  async dispose(): Promise<void> {
    // What could not be removed is on the driver's list; the caller can do nothing about it.
    await this.#remove().catch(() => {});
  }
}
