import type { Cell, CellSpec, Freezer, Isolation, LastingCell } from '../core/cell.ts';
import type { Driver, DriverTraits, LastingCells } from '../core/driver.ts';
import type { Enforcement } from '../core/enforcement.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecRequest } from '../core/exec.ts';
import { ScriptedCommand, ScriptedExec } from './scripted-command.double.ts';

const NOBODY: Enforcement = {
  cpus: 'nobody',
  memoryBytes: 'nobody',
  processes: 'nobody',
  diskBytes: 'nobody',
  openFiles: 'nobody',
  wallTimeMs: 'nobody',
  outputBytes: 'nobody',
  network: 'nobody',
  filesystem: 'nobody',
  identity: 'nobody',
  processView: 'nobody',
  syscalls: 'nobody',
};
const ISOLATION: Isolation = { driver: 'scripted', runtime: 'none', enforcement: NOBODY };

/** For tests: what is inside a cell, with or without a server. */
export class ScriptedInside {
  readonly id: string;
  readonly spec: CellSpec;
  readonly commands = new Map<number, ScriptedCommand>();
  readonly all: ScriptedCommand[] = [];
  isFrozen = false;
  /** The deadline that it keeps without a server. */
  endsAfterMs: number | undefined;
  isGone = false;
  lastId = 0;

  constructor(id: string, spec: CellSpec) {
    this.id = id;
    this.spec = spec;
  }

  /** Commands that users sent. */
  get users(): ScriptedCommand[] {
    return this.all.filter(({ request }) => request.env['BASH_ENV'] !== undefined);
  }
}

/** For tests: all cells of a host; servers come and go. */
export class ScriptedHost {
  readonly cells: ScriptedInside[] = [];
  /** What commands of users do once they are started. */
  program: (command: ScriptedCommand) => void = () => {};

  get alive(): ScriptedInside[] {
    return this.cells.filter(({ isGone }) => !isGone);
  }
}

class ScriptedCell implements Cell {
  readonly id: string;
  readonly name: string;
  readonly lasting: LastingCell;
  readonly freezer: Freezer = { freeze: () => this.#freeze(true), thaw: () => this.#freeze(false) };
  readonly workdir = '/tmp';
  readonly isolation = ISOLATION;
  readonly main = undefined;
  readonly gone: Promise<void>;
  readonly #inside: ScriptedInside;
  readonly #host: ScriptedHost;
  #markGone: () => void = () => {};

  constructor(inside: ScriptedInside, host: ScriptedHost) {
    this.#inside = inside;
    this.#host = host;
    this.id = inside.id;
    this.name = inside.spec.name;
    this.lasting = {
      record: `record-${inside.id}`,
      endAfter: (deadline) => (this.#inside.endsAfterMs = deadline?.afterMs),
      resume: (number, fromByte) => this.#resume(number, fromByte),
    };
    this.gone = new Promise((resolve) => (this.#markGone = resolve));
  }

  exec(request: ExecRequest): Promise<Exec> {
    const inside = this.#inside;
    if (inside.isGone) return Promise.reject(new HotcellError('CELL_LOST', 'gone'));
    const command = new ScriptedCommand(++inside.lastId, request);
    inside.commands.set(command.id, command);
    inside.all.push(command);
    const exec = new ScriptedExec(command, () => inside.commands.delete(command.id));
    command.attach(exec, 0);
    if (request.env['BASH_ENV'] !== undefined) this.#host.program(command);
    else if (['bash', 'true'].includes(request.argv[0])) command.exit(0);
    return Promise.resolve(exec);
  }

  #resume(id: number, fromByte: number): Exec | undefined {
    const command = this.#inside.commands.get(id);
    if (command === undefined) return undefined;
    const exec = new ScriptedExec(command, () => this.#inside.commands.delete(id));
    command.attach(exec, fromByte);
    return exec;
  }

  #freeze(isFrozen: boolean): Promise<void> {
    this.#inside.isFrozen = isFrozen;
    return Promise.resolve();
  }

  usage(): Promise<{ cpuMs: number; memoryBytes: undefined; processes: number }> {
    const running = [...this.#inside.commands.values()].filter(({ isEnded }) => !isEnded);
    return Promise.resolve({ cpuMs: 1, memoryBytes: undefined, processes: running.length });
  }

  /** As somebody outside would end it. */
  lose(): void {
    this.#inside.isGone = true;
    for (const command of this.#inside.commands.values()) command.lose(new HotcellError('CELL_LOST', 'gone'));
    this.#markGone();
  }

  /** The server is gone. */
  detach(): void {
    for (const command of this.#inside.commands.values()) {
      command.detach(new HotcellError('CELL_LOST', 'the server lets go'));
    }
  }

  dispose(): Promise<void> {
    this.lose();
    return this.gone;
  }
}

/** For tests: one server's driver. */
export class ScriptedDriver implements Driver {
  readonly name = 'scripted';
  readonly traits: DriverTraits = {
    confines: 'cells',
    images: false,
    sharesByDefault: false,
    terminals: true,
    workers: true,
    hostFolders: true,
  };
  readonly cells: ScriptedCell[] = [];
  readonly #host: ScriptedHost;
  /** Called before a cell is made; may wait or fail. */
  beforeCreate: () => Promise<void> = () => Promise.resolve();

  constructor(host: ScriptedHost) {
    this.#host = host;
  }

  probe(): Promise<never> {
    return Promise.reject(new Error('nobody asks for it here'));
  }

  async create(spec: CellSpec): Promise<Cell> {
    await this.beforeCreate();
    const inside = new ScriptedInside(String(this.#host.cells.length + 1), spec);
    this.#host.cells.push(inside);
    return this.#hold(inside);
  }

  readonly lasting: { -readonly [Name in keyof LastingCells]: LastingCells[Name] } = {
    adopt: (record) => this.#adopt(record),
    list: () =>
      Promise.resolve(
        this.#host.alive.map(({ id, spec }) => ({ id, since: 0, store: spec.lasting?.store ?? '' })),
      ),
    reclaim: (_keeper, keep) => this.#reclaimLasting(keep),
  };

  async #adopt(record: string): Promise<Cell> {
    const inside = this.#host.alive.find(({ id }) => record === `record-${id}`);
    if (inside === undefined) throw new HotcellError('CELL_LOST', 'there is no such cell any more');
    inside.isFrozen = false;
    return Promise.resolve(this.#hold(inside));
  }

  #hold(inside: ScriptedInside): ScriptedCell {
    const cell = new ScriptedCell(inside, this.#host);
    this.cells.push(cell);
    return cell;
  }

  #reclaimLasting(keep: ReadonlySet<string>): Promise<string[]> {
    const removed = this.#host.alive.filter(({ id }) => !keep.has(id));
    for (const inside of removed) inside.isGone = true;
    return Promise.resolve(removed.map(({ id }) => id));
  }

  list(): [] {
    return [];
  }

  orphans(): Promise<[]> {
    return Promise.resolve([]);
  }

  reclaim(): Promise<[]> {
    return Promise.resolve([]);
  }

  /** In whatever way the server ends: cells stay, and nobody listens any more. */
  close(): Promise<void> {
    for (const cell of this.cells) cell.detach();
    return Promise.resolve();
  }
}
