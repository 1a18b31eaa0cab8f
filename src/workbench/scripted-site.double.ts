import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cell, CellSpec } from '../core/cell.ts';
import type { Driver, DriverTraits } from '../core/driver.ts';
import type { Enforcement } from '../core/enforcement.ts';
import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecOutcome, ExecRequest, KillCause, Usage } from '../core/exec.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { encodeFrame, FrameReader } from '../lib/frames.ts';
import type { Packages } from '../packages/api.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { WorkbenchSite } from './options.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
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

/** For tests: a command that does what the test says. */
export class ScriptedExec implements Exec {
  readonly request: ExecRequest;
  readonly ended: Promise<void>;
  readonly heard: string[] = [];
  readonly #queue = new EventQueue<ExecEvent>();
  #cause: KillCause | undefined;
  #markEnded: () => void = () => {};
  onInput: (bytes: Uint8Array) => void = () => {};
  stdin = '';

  constructor(request: ExecRequest) {
    this.request = request;
    this.ended = new Promise((resolve) => (this.#markEnded = resolve));
  }

  get events(): AsyncIterable<ExecEvent> {
    return this.#queue;
  }

  say(text: string | Uint8Array, type: 'stdout' | 'stderr' = 'stdout'): void {
    this.#queue.push({ type, bytes: typeof text === 'string' ? new TextEncoder().encode(text) : text });
  }

  exit(outcome: ExecOutcome | number = 0, usage: Usage = NO_USAGE): void {
    const own = typeof outcome === 'number' ? ({ kind: 'exited', code: outcome } as const) : outcome;
    const fate = this.#cause === undefined ? own : toOutcome(this.#cause);
    this.#queue.push({ type: 'exit', outcome: fate, usage });
    this.#queue.end();
    this.#markEnded();
  }

  lose(): void {
    this.#queue.fail(new HotcellError('CELL_LOST', 'gone'));
    this.#markEnded();
  }

  write(bytes: Uint8Array): void {
    this.stdin += new TextDecoder().decode(bytes);
    this.onInput(bytes);
  }

  closeStdin(): void {
    this.heard.push('eof');
  }

  kill(cause: KillCause): Promise<void> {
    this.#cause ??= cause;
    this.heard.push(`kill ${cause}`);
    this.exit();
    return Promise.resolve();
  }

  terminate(): void {}

  usage(): Promise<Usage> {
    return Promise.resolve(NO_USAGE);
  }
}

function toOutcome(cause: KillCause): ExecOutcome {
  return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
}

/** For tests: a cell whose helpers answer, and whose users' commands the test plays. */
export class ScriptedCell implements Cell {
  readonly id: string;
  readonly name: string;
  readonly spec: CellSpec;
  readonly workdir = '/tmp';
  readonly isolation = { driver: 'scripted', runtime: 'none', enforcement: NOBODY };
  readonly main = undefined;
  readonly gone: Promise<void>;
  readonly codes: ScriptedExec[] = [];
  readonly #site: ScriptedSite;
  #markGone: () => void = () => {};
  isGone = false;

  constructor(id: string, spec: CellSpec, site: ScriptedSite) {
    this.id = id;
    this.name = spec.name;
    this.spec = spec;
    this.#site = site;
    this.gone = new Promise((resolve) => (this.#markGone = resolve));
  }

  exec(request: ExecRequest): Promise<Exec> {
    if (this.isGone) return Promise.reject(new HotcellError('CELL_LOST', 'gone'));
    const exec = new ScriptedExec(request);
    const [program] = request.argv;
    if (program === 'sh') this.#tellPlaces(exec);
    else if (program === 'perl') answerAsFiles(exec);
    else {
      this.codes.push(exec);
      this.#site.program(exec, this);
    }
    return Promise.resolve(exec);
  }

  #tellPlaces(exec: ScriptedExec): void {
    const [code = { folder: '', at: '' }, packages = { at: '' }] = this.spec.folders ?? [];
    const token = this.#site.isBlind ? 'none' : readFileSync(join(code.folder, '.token'), 'utf8');
    exec.say(`${token}\n${code.at}\n${packages.at}\n`);
    exec.exit();
  }

  usage(): Promise<{ cpuMs: number; memoryBytes: undefined; processes: undefined }> {
    return Promise.resolve({ cpuMs: 0, memoryBytes: undefined, processes: undefined });
  }

  /** As somebody outside would end it. */
  lose(): void {
    this.isGone = true;
    for (const exec of this.codes) exec.lose();
    this.#markGone();
  }

  dispose(): Promise<void> {
    this.lose();
    return this.gone;
  }
}

/** An empty folder, whatever it is asked. */
function answerAsFiles(exec: ScriptedExec): void {
  const reader = new FrameReader(1 << 20);
  exec.onInput = (bytes) => {
    for (const { id } of reader.push(bytes)) exec.say(encodeFrame('.', id));
  };
}

/** For tests: what cells are made with. */
export class ScriptedSite {
  readonly cells: ScriptedCell[] = [];
  readonly specs: CellSpec[] = [];
  readonly allowed: unknown[] = [];
  refusals: EgressRefusal[] = [];
  confines: DriverTraits['confines'] = 'cells';
  /** The engine does not see our folders. */
  isBlind = false;
  /** What users' commands do. */
  program: (exec: ScriptedExec, cell: ScriptedCell) => void = (exec) => exec.exit();
  /** Called before a cell is made; may wait or fail. */
  beforeCreate: () => Promise<void> = () => Promise.resolve();
  prepare: Packages['prepare'] = () => Promise.reject(new Error('no packages here'));
  images: WorkbenchSite['images'];

  open(): WorkbenchSite {
    return {
      driver: this.#driver(),
      packages: { folder: '/store', prepare: (specs, options) => this.prepare(specs, options) },
      openNetwork: (allow) => Promise.resolve(this.#network(allow)),
      images: this.images,
      runtime: 'scripted 1',
      notes: [],
    };
  }

  #driver(): Driver {
    return {
      name: 'scripted',
      traits: {
        confines: this.confines,
        images: this.images !== undefined,
        sharesByDefault: false,
        terminals: true,
        workers: true,
        hostFolders: !this.isBlind,
      },
      probe: () => Promise.reject(new Error('nobody asks for it')),
      create: async (spec) => {
        this.specs.push(spec);
        await this.beforeCreate();
        const cell = new ScriptedCell(`cell${this.cells.length + 1}`, spec, this);
        this.cells.push(cell);
        return cell;
      },
      list: () => [],
      orphans: () => Promise.resolve([]),
      reclaim: () => Promise.resolve([]),
      close: () => Promise.resolve(),
    };
  }

  #network(allow: unknown): CellNetwork {
    this.allowed.push(allow);
    return {
      variables: { HTTP_PROXY: 'http://gate' },
      port: 4321,
      isReady: true,
      untilReady: () => Promise.resolve(),
      describe: () => ({ allow: [], hosts: [], allowedCount: 0, refusedCount: 0, refusals: [] }),
      reachable: () => [],
      setAllow: (next) => this.allowed.push(next),
      mark: () => 0,
      refusalsSince: () => this.refusals,
      close: () => this.allowed.push('closed'),
    };
  }
}
