import { randomBytes } from 'node:crypto';
import { chmod, mkdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fillRequest, type Cell, type CellSpec, type CellSummary, type Isolation } from '../../core/cell.ts';
import type { Driver, Probe } from '../../core/driver.ts';
import { requireEnforcement, type Enforcement, type Promised } from '../../core/enforcement.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { deadInstances, defaultStateDirectory, openInstance, type Instance } from '../process/instance.ts';
import { killMarked } from '../process/marked-processes.ts';
import { refuseSpec, refuseTerminal } from '../refuse-spec.ts';
import { SubprocessCell } from './cell.ts';
import { SUBPROCESS_TRAITS } from './traits.ts';

export interface SubprocessOptions {
  readonly stateDirectory: string | undefined;
  readonly guest: string;
  readonly tools: readonly { readonly name: string; readonly path: string }[];
  readonly weaker: readonly Promised[];
}

/** Not a security boundary: time and output are watched, everything else is trusted. */
const ENFORCEMENT: Enforcement = {
  cpus: 'nobody',
  memoryBytes: 'nobody',
  processes: 'nobody',
  diskBytes: 'nobody',
  openFiles: 'nobody',
  wallTimeMs: 'supervisor',
  outputBytes: 'supervisor',
  network: 'nobody',
  filesystem: 'nobody',
  identity: 'nobody',
  processView: 'nobody',
  syscalls: 'nobody',
};

interface Opened {
  readonly instance: Instance;
  readonly tools: string;
}

/** Plain processes of this host, for code that is trusted anyway. UNSAFE, and asked for by name only. */
export class SubprocessDriver implements Driver {
  readonly name = 'subprocess';
  readonly traits = SUBPROCESS_TRAITS;
  readonly #options: SubprocessOptions;
  readonly #cells = new Map<string, SubprocessCell>();
  #opening: Promise<Opened> | undefined;

  constructor(options: SubprocessOptions) {
    this.#options = options;
  }

  probe(): Promise<Probe> {
    if (process.platform !== 'linux') {
      return Promise.resolve({
        ok: false,
        problem: 'the subprocess driver needs Linux',
        remedy: 'Run Hotcell on Linux.',
      });
    }
    return Promise.resolve({
      ok: true,
      runtime: 'UNSAFE plain processes of the host',
      enforcement: ENFORCEMENT,
      notes: [{ text: 'no isolation: programs can do what the server can do' }],
    });
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  async create(spec: CellSpec): Promise<Cell> {
    refuseSpec(spec, this);
    requireEnforcement(ENFORCEMENT, this.#options.weaker);
    this.#opening ??= this.#open();
    const { instance, tools } = await this.#opening;
    const id = randomBytes(6).toString('hex');
    const directory = join(instance.directory, 'cells', id);
    const workdir = join(directory, 'work');
    await mkdir(workdir, { recursive: true });
    const folders = (spec.folders ?? []).map(({ name, folder }) => [name, folder] as const);
    const places = { workdir, guest: this.#options.guest, ...Object.fromEntries(folders) };
    const base = { PATH: `${tools}:/usr/local/bin:/usr/bin:/bin`, HOME: workdir, LANG: 'C.UTF-8' };
    const fill = (request: ExecRequest): ExecRequest => {
      refuseTerminal(request, this);
      return fillRequest(request, places, base);
    };
    const isolation: Isolation = {
      driver: this.name,
      runtime: 'UNSAFE plain processes of the host',
      enforcement: ENFORCEMENT,
    };
    const cell = new SubprocessCell({
      id,
      name: spec.name,
      workdir,
      isolation,
      mark: `${instance.id}-${id}`,
      fill,
      main: spec.main,
      cleanUp: async () => {
        this.#cells.delete(id);
        await rm(directory, { recursive: true, force: true });
      },
    });
    this.#cells.set(id, cell);
    return cell;
  }

  async #open(): Promise<Opened> {
    const instance = await openInstance(await this.#stateDirectory());
    const tools = join(instance.directory, 'bin');
    await mkdir(tools);
    await chmod(tools, 0o755);
    for (const tool of this.#options.tools) await symlink(tool.path, join(tools, tool.name));
    return { instance, tools };
  }

  async #stateDirectory(): Promise<string> {
    return `${this.#options.stateDirectory ?? (await defaultStateDirectory())}-subprocess`;
  }

  async reclaim(): Promise<string[]> {
    const reclaimed: string[] = [];
    for (const instance of await deadInstances(await this.#stateDirectory())) {
      await killMarked(`${instance.id}-`);
      await rm(instance.directory, { recursive: true, force: true });
      reclaimed.push(instance.id);
    }
    return reclaimed;
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    if (opened === undefined) return;
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    await rm(opened.instance.directory, { recursive: true, force: true });
    this.#opening = undefined;
  }
}
