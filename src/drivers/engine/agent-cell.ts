import type { Writable } from 'node:stream';
import { fillRequest, withFolders, type Cell, type CellSpec, type CellUsage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecRequest } from '../../core/exec.ts';
import { AgentLink, type LastingLink } from '../agent/agent-link.ts';
import { KnownCell } from '../known-cell.ts';
import { PATHS_IN_CELL, WORKDIR_IN_CELL } from '../linux/cell-paths.ts';

export interface AgentCellParts extends Pick<Cell, 'id' | 'name' | 'isolation'> {
  readonly spec: CellSpec;
  /** Of a cell that outlives us. */
  readonly lasting?: LastingLink;
  usage(): Promise<CellUsage>;
  /** Removes the container, running or not; rejects when that cannot be done now. */
  remove(): Promise<void>;
}

/** A container whose PID 1 is the agent. One connection carries everything; no call of the engine is needed to run. */
export abstract class AgentCell<Stream extends Writable> extends KnownCell implements Cell {
  readonly workdir = WORKDIR_IN_CELL;
  readonly main: Exec | undefined;
  readonly #gone = Promise.withResolvers<void>();
  readonly gone = this.#gone.promise;
  protected readonly link: AgentLink;
  /** To the agent. */
  protected stream: Stream;
  protected removal: Promise<void> | undefined;
  readonly #parts: AgentCellParts;

  constructor(parts: AgentCellParts, stream: Stream) {
    super(parts);
    const { name, spec, lasting } = parts;
    this.#parts = parts;
    this.stream = stream;
    this.link = new AgentLink({
      cellName: name,
      write: (bytes) => void this.stream.write(bytes),
      giveUp: () => this.remove(),
      ...(lasting === undefined ? {} : { lasting }),
    });
    this.main = spec.main === undefined ? undefined : this.#start(spec.main, { alone: true });
  }

  #start(request: ExecRequest, options: { readonly alone: boolean }): Exec {
    const places = withFolders(PATHS_IN_CELL, this.#parts.spec.folders);
    return this.link.start(fillRequest(request, places, {}), options);
  }

  /** Resolves when the agent has said that it is there. */
  async ready(): Promise<void> {
    await this.link.untilReady();
  }

  async exec(request: ExecRequest): Promise<Exec> {
    if (this.main !== undefined) throw new HotcellError('INTERNAL', 'this cell was made for one program');
    return this.#start(request, { alone: false });
  }

  usage(): Promise<CellUsage> {
    return this.#parts.usage();
  }

  protected remove(): Promise<void> {
    this.removal ??= this.#parts.remove().finally(() => {
      this.letGo();
      this.#gone.resolve();
    });
    return this.removal;
  }

  /** Lets go of the connection, after the container is gone. */
  protected letGo(): void {
    this.stream.destroy();
  }

  /** The container is somebody else's: nothing is removed. */
  protected disown(): void {
    this.removal ??= Promise.resolve(this.#gone.resolve());
  }

  async dispose(): Promise<void> {
    // What could not be removed is on the driver's list; the caller can do nothing about it.
    await this.remove().catch(() => {});
  }
}
