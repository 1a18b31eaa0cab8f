import type { Cell, CellSpec, CellUsage, Isolation } from '../core/cell.ts';
import type { Driver, DriverTraits } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, ExecRequest, KillCause, Usage } from '../core/exec.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { READY_BYTE } from './job-frame.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };

const ISOLATION: Isolation = {
  driver: 'scripted',
  runtime: 'none',
  enforcement: {
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
  },
};

/** What a program does once it is started. */
export type Boot = (program: ScriptedProgram, spec: CellSpec) => void;

export const sayReady: Boot = (program) => program.sayReady();

/** For tests: a program that does what the test says. */
export class ScriptedProgram implements Exec {
  readonly request: ExecRequest;
  readonly events = new EventQueue<ExecEvent>();
  readonly kills: KillCause[] = [];
  readonly ended: Promise<void>;
  usageNow: Usage = NO_USAGE;
  isEnded = false;
  /** What it does once it has its job. */
  onJob: () => void = () => {};
  #markEnded: () => void = () => {};

  constructor(request: ExecRequest) {
    this.request = request;
    this.ended = new Promise((resolve) => (this.#markEnded = resolve));
  }

  sayReady(): void {
    this.events.push({ type: 'stdout', bytes: Uint8Array.of(READY_BYTE) });
  }

  say(text: string, type: 'stdout' | 'stderr' = 'stderr'): void {
    this.events.push({ type, bytes: new TextEncoder().encode(text) });
  }

  exit(outcome: ExecOutcome): void {
    this.events.push({ type: 'exit', outcome, usage: this.usageNow });
    this.events.end();
    this.#end();
  }

  lose(error: Error = new HotcellError('CELL_LOST', 'gone')): void {
    this.events.fail(error);
    this.#end();
  }

  #end(): void {
    this.isEnded = true;
    this.#markEnded();
  }

  write(): void {}

  closeStdin(): void {
    this.onJob();
  }

  kill(cause: KillCause): Promise<void> {
    this.kills.push(cause);
    if (!this.isEnded)
      this.exit(cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause });
    return Promise.resolve();
  }

  terminate(): void {}

  usage(): Promise<Usage> {
    return Promise.resolve(this.usageNow);
  }
}

/** For tests: a cell whose programs do what the test says. */
export class ScriptedCell implements Cell {
  readonly id: string;
  readonly spec: CellSpec;
  readonly workdir = '/tmp';
  readonly isolation = ISOLATION;
  readonly programs: ScriptedProgram[] = [];
  readonly main: ScriptedProgram | undefined;
  readonly gone: Promise<void>;
  readonly memoryLimits: number[] = [];
  limitMemory?: (bytes: number) => Promise<void> = (bytes) => {
    this.memoryLimits.push(bytes);
    return Promise.resolve();
  };
  disposals = 0;
  isLost = false;
  readonly #boot: (program: ScriptedProgram) => void;
  #markGone: () => void = () => {};

  constructor(id: string, spec: CellSpec, boot: (program: ScriptedProgram) => void) {
    this.id = id;
    this.spec = spec;
    this.#boot = boot;
    this.gone = new Promise((resolve) => (this.#markGone = resolve));
    this.main = spec.main === undefined ? undefined : this.#start(spec.main);
  }

  get name(): string {
    return this.spec.name;
  }

  usage(): Promise<CellUsage> {
    return Promise.resolve({ cpuMs: 0, memoryBytes: undefined, processes: undefined });
  }

  #start(request: ExecRequest): ScriptedProgram {
    const program = new ScriptedProgram(request);
    this.programs.push(program);
    this.#boot(program);
    return program;
  }

  exec(request: ExecRequest): Promise<ScriptedProgram> {
    if (this.isLost) return Promise.reject(new HotcellError('CELL_LOST', 'gone'));
    return Promise.resolve(this.#start(request));
  }

  /** As somebody outside would end it. */
  lose(): void {
    this.isLost = true;
    for (const program of this.programs) if (!program.isEnded) program.lose();
    this.#markGone();
  }

  dispose(): Promise<void> {
    this.disposals++;
    this.lose();
    return this.gone;
  }
}

/** For tests: a driver without any runtime. */
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
  boot: Boot = sayReady;
  /** Called before a cell is made; may wait or fail. */
  beforeCreate: (spec: CellSpec) => Promise<void> = () => Promise.resolve();
  peakMemoryBytes: number | undefined = undefined;
  canLimitMemory = true;

  probe(): Promise<never> {
    return Promise.reject(new Error('nobody asks for it here'));
  }

  get specs(): CellSpec[] {
    return this.cells.map((cell) => cell.spec);
  }

  async create(spec: CellSpec): Promise<ScriptedCell> {
    await this.beforeCreate(spec);
    const cell = new ScriptedCell(String(this.cells.length + 1), spec, (program) => {
      program.usageNow = { ...NO_USAGE, peakMemoryBytes: this.peakMemoryBytes };
      this.boot(program, spec);
    });
    if (!this.canLimitMemory) delete cell.limitMemory;
    this.cells.push(cell);
    return cell;
  }

  get alive(): number {
    return this.cells.filter((cell) => cell.disposals === 0).length;
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

  close(): Promise<void> {
    return Promise.resolve();
  }
}
