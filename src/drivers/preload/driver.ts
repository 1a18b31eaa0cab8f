import { accessSync, constants, readFileSync, readdirSync, statSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fillRequest, type Cell, type CellSpec, type Isolation } from '../../core/cell.ts';
import type { DriverTraits, Probe } from '../../core/driver.ts';
import { requireEnforcement, unenforced } from '../../core/enforcement.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { refuseSpec, refuseTerminal } from '../refuse-spec.ts';
import { UnusedIds } from '../linux/unused-ids.ts';
import {
  HostDriver,
  PROGRAM_FOLDERS,
  type HostDriverOptions,
  type HostCellFolder,
} from '../process/host-driver.ts';
import type { Instance } from '../process/instance.ts';
import { GROUPS, PreloadCell, type PlannedCommand } from './cell.ts';
import type { Launch } from './command.ts';
import { DEFAULT_REACH, toPathRules, type CellFolders } from './command-walls.ts';
import { toLaunchPlan } from './launch-plan.ts';
import {
  findLayer,
  LAUNCHER_ENV,
  launcherCommand,
  toEnforcement,
  toFacts,
  toNotes,
  toRuntime,
  type Layer,
} from './probe.ts';
import { killLeftGroup } from './process-group.ts';
import { toSeatbeltCommand } from './seatbelt.ts';
import { PRELOAD } from './kind.ts';

/** Bun must be among the tools: it runs the launcher. */
export type PreloadOptions = HostDriverOptions;

const NO_BUN = 'Bun is missing: npm install, which brings it';
const WHOLE_CORE = { cpus: Math.ceil(DEFAULT_LIMITS.cpus) };

/** Processes of this host, each with walls of the kernel around it. Asked for by name only. */
export class PreloadDriver extends HostDriver<PreloadCell> {
  readonly name = 'preload';
  readonly traits: DriverTraits = PRELOAD.traits;
  readonly #ids = new UnusedIds();
  #layer: Promise<Layer> | undefined;

  async probe(): Promise<Probe> {
    const bun = this.#bun();
    if (bun === undefined) return { ok: false, problem: NO_BUN, remedy: 'npm install' };
    try {
      const layer = await findLayer(bun, this.options.guest);
      const enforcement = toEnforcement(layer, WHOLE_CORE);
      const missing = unenforced(enforcement).filter((promise) => !this.options.weaker.includes(promise));
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

  async create(spec: CellSpec): Promise<Cell> {
    refuseSpec(spec, this);
    const layer = await (this.#layer ??= findLayer(this.#requireBun(), this.options.guest));
    const enforcement = toEnforcement(layer, spec.limits);
    requireEnforcement(enforcement, this.options.weaker);
    const place = await this.makeCellFolder(await this.site(), spec);
    const { id, directory, workdir } = place;
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
      plan: this.#planner(layer, spec, place, user),
      main: spec.main,
      launcher: layer.kind === 'linux' ? this.#launcher() : undefined,
      cleanUp: () => this.removeCellFolder(place),
    });
    return this.keep(cell);
  }

  #planner(
    layer: Layer,
    spec: CellSpec,
    { workdir, places: names, variables }: HostCellFolder,
    user: number | undefined,
  ): (request: ExecRequest) => PlannedCommand {
    const { guest, tools } = this.options;
    const folders = spec.folders ?? [];
    const base = { ...variables, TMPDIR: workdir };
    const places: CellFolders = {
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
    return { argv: launcherCommand(this.#requireBun(), this.options.guest), env: LAUNCHER_ENV, cwd: '/' };
  }

  #findProgram(name: string): string {
    if (name.includes('/')) return name;
    const tool = this.options.tools.find((candidate) => candidate.name === name);
    const found = [
      ...(tool === undefined ? [] : [tool.path]),
      ...PROGRAM_FOLDERS.map((folder) => join(folder, name)),
    ];
    const program = found.find(isExecutable);
    if (program === undefined) throw new HotcellError('CELL_START_FAILED', `${name} is not installed`);
    return program;
  }

  #bun(): string | undefined {
    return this.options.tools.find(({ name }) => name === 'bun')?.path;
  }

  #requireBun(): string {
    const bun = this.#bun();
    if (bun === undefined) throw new HotcellError('DRIVER_UNAVAILABLE', NO_BUN);
    return bun;
  }

  protected endLeft({ directory }: Instance): Promise<void> {
    for (const { group, start } of leftGroups(join(directory, 'cells'))) killLeftGroup(group, start);
    return Promise.resolve();
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
