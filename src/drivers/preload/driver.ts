import { randomBytes } from 'node:crypto';
import { accessSync, constants, readFileSync, readdirSync, statSync } from 'node:fs';
import { chmod, chown, mkdir, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fillRequest, type Cell, type CellSpec, type CellSummary, type Isolation } from '../../core/cell.ts';
import type { Driver, Probe } from '../../core/driver.ts';
import { requireEnforcement, unenforced, type Promised } from '../../core/enforcement.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { refuseSpec, refuseTerminal } from '../refuse-spec.ts';
import { UnusedIds } from '../linux/unused-ids.ts';
import { deadInstances, defaultStateDirectory, openInstance, type Instance } from '../process/instance.ts';
import { GROUPS, PreloadCell, type PlannedCommand } from './cell.ts';
import type { Launch } from './command.ts';
import { DEFAULT_REACH, toPathRules, type CellPlaces } from './command-walls.ts';
import { toLaunchPlan } from './launch-plan.ts';
import {
  findLayer,
  launcherCommand,
  toEnforcement,
  toFacts,
  toNotes,
  toRuntime,
  type Layer,
} from './probe.ts';
import { killLeftGroup } from './process-group.ts';
import { toSeatbeltCommand } from './seatbelt.ts';
import { PRELOAD_TRAITS } from './traits.ts';

export interface PreloadOptions {
  readonly stateDirectory: string | undefined;
  readonly guest: string;
  /** Bun must be among them: it runs the launcher. */
  readonly tools: readonly { readonly name: string; readonly path: string }[];
  readonly weaker: readonly Promised[];
}

interface Opened {
  readonly instance: Instance;
  readonly bin: string;
  readonly layer: Layer;
}

const NO_BUN = 'Bun is missing: npm install, which brings it';
const PATH = ['/usr/local/bin', '/usr/bin', '/bin'];
const WHOLE_CORE = { cpus: Math.ceil(DEFAULT_LIMITS.cpus) };

/** Processes of this host, each with walls of the kernel around it. Asked for by name only. */
export class PreloadDriver implements Driver {
  readonly name = 'preload';
  readonly traits = PRELOAD_TRAITS;
  readonly #options: PreloadOptions;
  readonly #cells = new Map<string, PreloadCell>();
  readonly #ids = new UnusedIds();
  #opening: Promise<Opened> | undefined;

  constructor(options: PreloadOptions) {
    this.#options = options;
  }

  async probe(): Promise<Probe> {
    const bun = this.#bun();
    if (bun === undefined) return { ok: false, problem: NO_BUN, remedy: 'npm install' };
    try {
      const layer = await findLayer(bun, this.#options.guest);
      const enforcement = toEnforcement(layer, WHOLE_CORE);
      const missing = unenforced(enforcement).filter((promise) => !this.#options.weaker.includes(promise));
      if (missing.includes('filesystem') || missing.includes('network')) {
        return {
          ok: false,
          problem: `no walls can be made here (${toFacts(layer)
            .map(({ name, value }) => `${name}: ${value}`)
            .join(', ')})`,
          remedy: `Use the oci or the docker driver, or run without isolation by name: --weaker ${missing.join(',')}`,
        };
      }
      const runtime = toRuntime(layer, enforcement);
      return { ok: true, runtime, enforcement, notes: toNotes(layer, enforcement), facts: toFacts(layer) };
    } catch (error) {
      return { ok: false, problem: messageOf(error), remedy: 'npm install' };
    }
  }

  list(): CellSummary[] {
    return [...this.#cells.values()].map(({ id, name }) => ({ id, name }));
  }

  async create(spec: CellSpec): Promise<Cell> {
    refuseSpec(spec, this);
    this.#opening ??= this.#open();
    const opened = await this.#opening;
    const { instance, layer } = opened;
    const enforcement = toEnforcement(layer, spec.limits);
    requireEnforcement(enforcement, this.#options.weaker);
    const id = randomBytes(6).toString('hex');
    const directory = join(instance.directory, 'cells', id);
    const workdir = join(directory, 'work');
    await mkdir(workdir, { recursive: true, mode: 0o711 });
    await chmod(workdir, 0o700);
    const user = layer.kind === 'linux' && layer.isRoot ? this.#ids.next() : undefined;
    if (user !== undefined) await chown(workdir, user, user);
    const isolation: Isolation = { driver: this.name, runtime: toRuntime(layer, enforcement), enforcement };
    const cell = new PreloadCell({
      id,
      name: spec.name,
      directory,
      workdir,
      limits: spec.limits,
      isolation,
      plan: this.#planner(opened, spec, { workdir, user }),
      main: spec.main,
      launcher: layer.kind === 'linux' ? this.#launcher() : undefined,
      cleanUp: async () => {
        this.#cells.delete(id);
        await rm(directory, { recursive: true, force: true, maxRetries: 5 });
      },
    });
    this.#cells.set(id, cell);
    return cell;
  }

  #planner(
    { bin, layer }: Opened,
    spec: CellSpec,
    { workdir, user }: { readonly workdir: string; readonly user: number | undefined },
  ): (request: ExecRequest) => PlannedCommand {
    const { guest, tools } = this.#options;
    const folders = spec.folders ?? [];
    const names = {
      workdir,
      guest,
      ...Object.fromEntries(folders.map(({ name, folder }) => [name, folder])),
    };
    const base = { PATH: [bin, ...PATH].join(':'), HOME: workdir, TMPDIR: workdir, LANG: 'C.UTF-8' };
    const places: CellPlaces = {
      workdir,
      folders: [guest, ...folders.map(({ folder }) => folder)],
      tools: tools.map(({ path }) => path),
    };
    const closedPlaces = [...places.folders, ...places.tools].some((path) => !isOpenToAll(path));
    const launcher = this.#launcher();
    const connector = [...launcher.argv.slice(0, -1), `${guest}/preload/connect.ts`];
    return (given) => {
      refuseTerminal(given, this);
      const request = fillRequest(given, names, base);
      const reach = given.reach ?? DEFAULT_REACH;
      const program = this.#findProgram(request.argv[0]);
      const planned = { forks: reach.programs, touched: request.touch };
      if (layer.kind !== 'linux') {
        const subject = {
          paths: toPathRules(program, places, reach),
          port: reach.port,
          forks: reach.programs,
        };
        const args = request.argv.slice(1);
        const argv: [string, ...string[]] =
          layer.kind === 'seatbelt' ? toSeatbeltCommand(subject, program, args) : [program, ...args];
        return { ...planned, launch: { argv, env: request.env, cwd: request.cwd, plan: undefined } };
      }
      if (reach.port !== undefined && layer.kernel.seccomp && !layer.kernel.notify)
        throw new HotcellError('POLICY_UNENFORCEABLE', 'this kernel cannot hold a command to one port');
      const plan = toLaunchPlan(
        { request, program, reach, places, limits: spec.limits, id: user, closedPlaces, connector },
        layer.kernel,
        layer.table,
        process.pid,
      );
      return { ...planned, launch: { ...launcher, plan: JSON.stringify(plan) } };
    };
  }

  #launcher(): Omit<Launch, 'plan'> {
    return { argv: launcherCommand(this.#requireBun(), this.#options.guest), env: {}, cwd: '/' };
  }

  #findProgram(name: string): string {
    if (name.includes('/')) return name;
    const tool = this.#options.tools.find((candidate) => candidate.name === name);
    const found = [...(tool === undefined ? [] : [tool.path]), ...PATH.map((folder) => join(folder, name))];
    const program = found.find(isExecutable);
    if (program === undefined) throw new HotcellError('CELL_START_FAILED', `${name} is not installed`);
    return program;
  }

  #bun(): string | undefined {
    return this.#options.tools.find(({ name }) => name === 'bun')?.path;
  }

  #requireBun(): string {
    const bun = this.#bun();
    if (bun === undefined) throw new HotcellError('DRIVER_UNAVAILABLE', NO_BUN);
    return bun;
  }

  async #open(): Promise<Opened> {
    const layer = await findLayer(this.#requireBun(), this.#options.guest);
    const instance = await openInstance(await this.#stateDirectory());
    const bin = join(instance.directory, 'bin');
    await mkdir(bin);
    await chmod(bin, 0o755);
    for (const tool of this.#options.tools) await symlink(tool.path, join(bin, tool.name));
    return { instance, bin, layer };
  }

  async #stateDirectory(): Promise<string> {
    return `${this.#options.stateDirectory ?? (await defaultStateDirectory())}-preload`;
  }

  async reclaim(): Promise<string[]> {
    const reclaimed: string[] = [];
    for (const instance of await deadInstances(await this.#stateDirectory())) {
      for (const { group, start } of leftGroups(join(instance.directory, 'cells')))
        killLeftGroup(group, start);
      await rm(instance.directory, { recursive: true, force: true, maxRetries: 5 });
      reclaimed.push(instance.id);
    }
    return reclaimed;
  }

  async close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    if (opened === undefined) return;
    await Promise.all([...this.#cells.values()].map((cell) => cell.dispose()));
    await rm(opened.instance.directory, { recursive: true, force: true, maxRetries: 5 });
    this.#opening = undefined;
  }
}

/** Process groups that a server noted before it died. */
function leftGroups(cells: string): { group: number; start: string }[] {
  const names = (folder: string): string[] => {
    try {
      return readdirSync(folder);
    } catch {
      return [];
    }
  };
  return names(cells).flatMap((id) =>
    names(join(cells, id, GROUPS)).map((pid) => ({
      group: Number(pid),
      start: readFileSync(join(cells, id, GROUPS, pid), 'utf8'),
    })),
  );
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Can somebody without any rights read it, and get there? What lies below it is not looked at. */
function isOpenToAll(path: string): boolean {
  const info = statSync(path, { throwIfNoEntry: false });
  if (info === undefined) return true;
  const needed = info.isDirectory() ? 0o005 : 0o004;
  return (
    (info.mode & needed) === needed &&
    parentsOf(path).every((folder) => (statSync(folder).mode & 0o001) !== 0)
  );
}

function parentsOf(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [parent, ...parentsOf(parent)];
}
