import { closeSync, existsSync, openSync, readFileSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { mkdir, readFile, readdir, rmdir, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import type { CellUsage } from '../../core/cell.ts';
import type { ReachableLimit, Usage } from '../../core/exec.ts';
import { HotcellError } from '../../core/errors.ts';
import { errnoOf } from '../../lib/errno.ts';
import type { Limits } from '../../core/limits.ts';
import { ASIDE, type CgroupLayout } from './cgroup-layout.ts';
import { toCgroupPlan, type CgroupPlan, type FileName } from './cgroup-plan.ts';
import { type RuntimeTraits } from './runtime-traits.ts';

/** Files that a kernel may lack (swap accounting, recent counters); every other one must be there. */
const OPTIONAL = /memsw|swap|peak$/;

/** The cgroup of one cell: limits in, usage out, also after its processes are gone. */
export class CellCgroup {
  readonly #plan: CgroupPlan;
  readonly #stats = new Map<FileName, number>();
  readonly #overheadBytes: number;
  #memoryBytes: number;

  private constructor(plan: CgroupPlan, memoryBytes: number, overheadBytes: number) {
    this.#plan = plan;
    this.#overheadBytes = overheadBytes;
    this.#memoryBytes = memoryBytes + overheadBytes;
  }

  /** The cgroup of a cell that another server made. */
  static adopt(
    layout: CgroupLayout & { version: 1 | 2 },
    path: string,
    limits: Limits,
    { overhead }: RuntimeTraits,
  ): CellCgroup {
    return new CellCgroup(
      toCgroupPlan(layout, path, limits, { overhead }),
      limits.memoryBytes,
      overhead.memoryBytes,
    );
  }

  static async create(
    layout: CgroupLayout & { version: 1 | 2 },
    path: string,
    limits: Limits,
    traits: Pick<RuntimeTraits, 'overhead' | 'ownKernel'> & { readonly leaf?: string },
  ): Promise<CellCgroup> {
    const { overhead, ownKernel } = traits;
    const plan = toCgroupPlan(layout, path, limits, traits);
    const cgroup = new CellCgroup(plan, limits.memoryBytes, overhead.memoryBytes);
    await Promise.all(plan.folders.map((folder) => mkdir(folder)));
    // Out of memory, the kernel ends that other kernel with all its processes: nobody is left to hold the leaf.
    if (ownKernel) await Promise.all(plan.leaves.map((folder) => mkdir(folder)));
    // Unlike making or removing cgroups this does not wait for the kernel's cgroup lock.
    for (const [file, value] of plan.limits) writeLimit(file, value);
    return cgroup;
  }

  /**
   * A few microseconds, and unlike making or removing cgroups reading does not wait for the kernel's cgroup lock,
   * so it may be done on the event loop.
   */
  usage(): Usage {
    const cpu = this.#read('cpu') ?? '';
    const units = Number(/(?:^|usage_usec )(\d+)/.exec(cpu)?.[1] ?? 0);
    const peak = this.#read('memoryPeak');
    const counts = this.counts();
    const reached: ReachableLimit[] = (['memoryBytes', 'processes'] as const).filter(
      (limit) => counts[limit] > 0,
    );
    return {
      cpuMs: units / this.#plan.cpuUnitsPerMs,
      peakMemoryBytes: peak === undefined ? undefined : Math.min(Number(peak), this.#memoryBytes),
      reached,
    };
  }

  /** What the cell uses at the moment. */
  current(): CellUsage {
    const [memoryBytes, processes] = this.#plan.current.map((file) => readNumber(file));
    return { cpuMs: this.usage().cpuMs, memoryBytes, processes };
  }

  /** How often the kernel reported these limits as reached. */
  counts(): Record<'memoryBytes' | 'processes', number> {
    return {
      memoryBytes: countIn(this.#plan.outOfMemory, 'oom_kill'),
      processes: countIn(this.#plan.outOfProcesses, 'max'),
    };
  }

  #read(name: FileName): string | undefined {
    const descriptor = this.#open(name, 'r');
    if (descriptor === undefined) return undefined;
    const buffer = Buffer.allocUnsafe(1024);
    try {
      return buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, buffer.length, 0));
    } catch {
      // Somebody else removed the cgroup, and the end of the cell must be told all the same.
      return undefined;
    }
  }

  #open(name: FileName, mode: 'r' | 'r+'): number | undefined {
    const descriptor = this.#stats.get(name) ?? openIfThere(this.#plan.stats[name], mode);
    if (descriptor !== undefined) this.#stats.set(name, descriptor);
    return descriptor;
  }

  limitMemory(granted: number): void {
    const bytes = granted + this.#overheadBytes;
    // v1 keeps limit ≤ memsw at every moment, so the order depends on the direction.
    const files = bytes > this.#memoryBytes ? this.#plan.memory.toReversed() : this.#plan.memory;
    this.#memoryBytes = bytes;
    for (const file of files) writeLimit(file, String(bytes));
  }

  /**
   * Kills everything in the cell, the first process with all its namespace included; false if there was nothing yet.
   * SECURITY: the ids come from the kernel's own list a moment ago, not from a record that could be outdated.
   */
  async kill(): Promise<boolean> {
    this.lift();
    const counts = await Promise.all(this.#plan.members.map((folder) => killMembers(folder)));
    return counts.some((count) => count > 0);
  }

  /** A throttled process dies only when it is scheduled again; without the quota that is at once. */
  lift(): void {
    const [file, unlimited] = this.#plan.quota;
    try {
      writeFileSync(file, unlimited);
    } catch {
      // Gone already.
    }
  }

  /** As if nobody had been in it before: the quota is full and the peak is what there is now. */
  renew(): void {
    const [file] = this.#plan.quota;
    for (const [limit, value] of this.#plan.limits) if (limit === file) writeLimit(limit, value);
    const peak = this.#open('memoryPeak', 'r+');
    // Kernels before 6.12 know of no such thing in cgroup v2: there the peak is that of all who were in it.
    if (peak !== undefined) writeIfAllowed(peak, '0');
  }

  /** Its processes as the host numbers them, by the numbers that they have in their own namespace. */
  async hostPids(): Promise<ReadonlyMap<number, number>> {
    const pids = new Map<number, number>();
    for (const folder of this.#plan.members)
      for (const pid of toPids(await readFile(join(folder, 'cgroup.procs'), 'utf8'))) {
        const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
        const inside = /^NSpid:.*\t(\d+)$/m.exec(status)?.[1];
        if (inside !== undefined) pids.set(Number(inside), pid);
      }
    return pids;
  }

  /** Puts processes of the host into it; what they start is born there. */
  async admit(pids: readonly number[]): Promise<void> {
    for (const folder of this.#plan.folders)
      for (const pid of pids) await writeFile(join(folder, 'cgroup.procs'), String(pid));
  }

  close(): void {
    for (const descriptor of this.#stats.values()) closeSync(descriptor);
    this.#stats.clear();
  }
}

/** The sum of a named counter over some files; one that is gone counts nothing. */
function countIn(files: readonly string[], counter: string): number {
  const pattern = new RegExp(`^${counter} (\\d+)`, 'm');
  return files.reduce((sum, file) => {
    try {
      return sum + Number(pattern.exec(readFileSync(file, 'latin1'))?.[1] ?? 0);
    } catch {
      return sum;
    }
  }, 0);
}

function readNumber(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'latin1'));
  } catch {
    return undefined;
  }
}

function openIfThere(file: string, mode: 'r' | 'r+'): number | undefined {
  try {
    return openSync(file, mode);
  } catch {
    // A counter that this kernel lacks, or a cell that is gone.
    return undefined;
  }
}

function writeIfAllowed(descriptor: number, value: string): void {
  try {
    writeSync(descriptor, value, 0);
  } catch {
    // A kernel that lets nobody write there.
  }
}

function writeLimit(file: string, value: string): void {
  try {
    writeFileSync(file, value);
  } catch (error) {
    // SECURITY: a limit that cannot be set must fail the cell; only the ones a kernel may lack are passed over.
    if (!OPTIONAL.test(basename(file))) throw error;
  }
}

/** The folders under which a runtime or we make folders: mount points, or what was delegated. */
export function hierarchiesOf(layout: CgroupLayout): readonly string[] {
  if (layout.version === 'none') return [];
  return layout.version === 2 ? [layout.root] : layout.hierarchies;
}

/** One of our cgroups as a runtime wants it named: from the mount point. */
export function toRuntimePath(layout: CgroupLayout & { version: 1 | 2 }, path: string): string {
  return layout.version === 1 ? path : join('/', relative(layout.top, layout.root), path);
}

/** Makes the folders that hold the cells of one instance, with the controllers switched on below them. */
export async function makeInstanceCgroup(layout: CgroupLayout, path: string): Promise<void> {
  if (layout.version === 'none') return;
  if (layout.version === 1) {
    for (const mount of new Set(Object.values(layout.mounts)))
      await mkdir(join(mount, path), { recursive: true });
    return;
  }
  await clearOut(layout.root);
  let folder = layout.root;
  for (const part of ['', ...path.split('/').filter((word) => word !== '')]) {
    folder = join(folder, part);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'cgroup.subtree_control'), '+cpu +memory +pids');
  }
}

/**
 * Only a cgroup without processes can give controllers to those below it, unless it is the kernel's very top one, which
 * has no type. What was started in the one that was delegated, we among it, moves one level down, as Docker in Docker does.
 */
async function clearOut(folder: string): Promise<void> {
  if (!existsSync(join(folder, 'cgroup.type'))) return;
  for (let attempt = 0; attempt < 50; attempt++) {
    const members = (await readFile(join(folder, 'cgroup.procs'), 'utf8'))
      .split('\n')
      .filter((pid) => pid !== '');
    if (members.length === 0) return;
    await mkdir(join(folder, ASIDE), { recursive: true });
    // One that has ended meanwhile cannot be moved; one that forks is found at the next look.
    for (const pid of members) await writeFile(join(folder, ASIDE, 'cgroup.procs'), pid).catch(() => {});
  }
  throw new HotcellError('DRIVER_UNAVAILABLE', `cannot move the processes out of ${folder}`, {
    hint: 'Give Hotcell a cgroup of its own: systemd-run with -p Delegate=yes, or a container with its own cgroup and pid namespace.',
  });
}

/** Kills what still runs below `path` and removes the folders, in every hierarchy. */
export async function removeCgroups(hierarchies: readonly string[], path: string): Promise<void> {
  await Promise.all(hierarchies.map((mount) => removeFolder(join(mount, path))));
}

async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      await rmdir(folder);
      return;
    } catch (error) {
      const code = errnoOf(error);
      if (code === 'ENOENT') return;
      if (code !== 'EBUSY' && code !== 'ENOTEMPTY') throw error;
      if (attempt === 50) throw error;
    }
    await killMembers(folder);
    for (const child of await childFolders(folder)) await removeFolder(join(folder, child));
    if (attempt > 0) await new Promise((resolve) => setTimeout(resolve, Math.min(100, 5 * attempt)));
  }
}

async function childFolders(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}

/** SECURITY: 0 and 1 would mean our own group or the machine's init. */
function toPids(members: string): number[] {
  return members
    .split('\n')
    .map(Number)
    .filter((pid) => pid > 1);
}

async function killMembers(folder: string): Promise<number> {
  const members = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
  let killed = 0;
  for (const pid of toPids(members)) {
    try {
      process.kill(pid, 'SIGKILL');
      killed++;
    } catch {
      // Gone already.
    }
  }
  return killed;
}
