import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fillRequest, type Cell, type CellSpec, type Isolation } from '../../core/cell.ts';
import type { Nest, NestedRun, NestSpec } from '../../core/driver.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ExecRequest } from '../../core/exec.ts';
import type { Limits } from '../../core/limits.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { PATHS_IN_CELL } from '../linux/cell-paths.ts';
import { toHostname } from '../linux/hostname.ts';
import { encodeWalls, planWalls } from '../linux/inner-walls.ts';
import { judgeWalls, parseReport, REPORTED } from '../linux/judge-walls.ts';
import type { MaskablePaths } from '../linux/masked-paths.ts';
import { toSeccompProfile } from '../linux/seccomp.ts';
import { syscallTable } from '../linux/syscall-numbers.ts';
import type { OciCell } from './cell.ts';
import { RANGE } from './identity.ts';
import { NestedCell } from './nested-cell.ts';
import { BASE_ENV } from './rootfs.ts';
import { cgroupPathOf, type OciSite } from './site.ts';
import { SlotCgroup } from './slot-cgroup.ts';

const MiB = 1024 * 1024;
/** What the relay and who makes the slots may use beside the runs. */
const RELAY = { cpus: 1, memoryBytes: 96 * MiB, processes: 16, openFiles: 64 };
/** For each slot: its makers' ends, and those of a run, twice while it is being made. */
const DESCRIPTORS_PER_SLOT = 16;
const FORKER: ExecRequest = { argv: ['perl', '{guest}/forker.pl'], env: {} };
const NO_COMMAND: ExecRequest = { argv: [''], env: {} };
/** The ids that runs get: neither that of root nor that which programs have inside. */
const FIRST_ID = 2000;

type OuterSpec = Omit<CellSpec, 'name'>;

/** The cell around the slots: room for all of them, and for the few processes that serve them. Pure. */
function toOuterSpec({ limits, slots }: NestSpec): OuterSpec {
  return {
    kind: 'run',
    limits: {
      ...limits,
      cpus: limits.cpus * slots + RELAY.cpus,
      memoryBytes: toOuterBytes(limits, slots),
      processes: (limits.processes + 2) * slots + RELAY.processes,
      openFiles: Math.max(limits.openFiles, RELAY.openFiles + DESCRIPTORS_PER_SLOT * slots),
      // Nothing is to be written there: every run has a workdir of its own.
      diskBytes: MiB,
    },
  };
}

interface Slot {
  readonly cgroup: SlotCgroup;
  /** What its run was granted beyond the limit that all have. */
  moreBytes: number;
}

function toOuterBytes(limits: Limits, slots: number): number {
  return limits.memoryBytes * slots + RELAY.memoryBytes;
}

/** A cell of crun or runc whose slots make walls inside it. */
export class OciNest implements Nest {
  readonly id: string;
  readonly gone: Promise<void>;
  readonly #outer: OciCell;
  readonly #limits: Limits;
  readonly #slots: readonly Slot[];
  readonly #isolation: Isolation;
  #runs = 0;

  private constructor(outer: OciCell, limits: Limits, slots: readonly Slot[]) {
    this.id = outer.id;
    this.gone = outer.gone;
    this.#outer = outer;
    this.#limits = limits;
    this.#slots = slots;
    this.#isolation = { ...outer.isolation, walls: 'nested' };
    void outer.gone.then(() => slots.forEach(({ cgroup }) => cgroup.close()));
  }

  static async open(
    site: OciSite,
    spec: NestSpec,
    start: (spec: OuterSpec) => Promise<OciCell>,
  ): Promise<OciNest> {
    const { cgroups, plan } = requireNestable(site, spec);
    const outer = await start(toOuterSpec(spec));
    try {
      const makers = await outer.openSlots(plan);
      await outer.seal();
      const nest = new OciNest(
        outer,
        spec.limits,
        await makeSlots(site, outer, { cgroups, makers, limits: spec.limits }),
      );
      await nest.#look(site.paths);
      return nest;
    } catch (error) {
      await outer.dispose();
      if (error instanceof HotcellError) throw error;
      throw unenforceable(messageOf(error));
    }
  }

  get runsLeft(): number {
    return RANGE - FIRST_ID - this.#runs;
  }

  /** Every slot is asked what its walls look like from inside, before anybody's code is. */
  async #look(paths: MaskablePaths): Promise<void> {
    for (const slot of this.#slots.keys()) {
      const name = 'look';
      const id = this.#runs;
      const cell = this.#begin(slot, { name, mode: 'report' });
      const said: Uint8Array[] = [];
      for await (const event of cell.main.events) if (event.type !== 'exit') said.push(event.bytes);
      const expected = {
        id: FIRST_ID + id,
        host: toHostname(name),
        paths,
        diskBytes: this.#limits.diskBytes,
      };
      const problem = judgeWalls(parseReport(Buffer.concat(said)), expected);
      if (problem !== undefined) throw unenforceable(problem);
    }
  }

  begin(slot: number, run: NestedRun): Promise<Cell> {
    return Promise.resolve(this.#begin(slot, run));
  }

  #begin(
    number: number,
    run: Omit<NestedRun, 'mode'> & { readonly mode: NestedRun['mode'] | 'report' },
  ): NestedCell {
    const slot = this.#slots[number];
    if (slot === undefined || this.runsLeft <= 0) throw new HotcellError('INTERNAL', 'there is no such slot');
    const serial = this.#runs++;
    const { argv, env, touch } = fillRequest(run.command ?? NO_COMMAND, PATHS_IN_CELL, BASE_ENV);
    const words = run.mode === 'report' ? REPORTED : argv;
    try {
      slot.cgroup.renew();
    } catch (error) {
      throw new HotcellError('CELL_LOST', `the cell around ${run.name} has ended`, { cause: error });
    }
    slot.moreBytes = 0;
    const main = this.#outer.begin(
      [
        String(number),
        String(FIRST_ID + serial),
        toHostname(run.name),
        run.mode,
        touch ?? '',
        String(words.length),
        ...words,
        ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
      ],
      slot.cgroup,
    );
    return new NestedCell({
      id: `${this.id}-${serial.toString(36)}`,
      name: run.name,
      isolation: this.#isolation,
      main,
      cgroup: slot.cgroup,
      limitMemory: (bytes) => this.#limitMemory(slot, bytes),
    });
  }

  /** The cell around the slots must have room for what one of them is granted, at every moment. */
  async #limitMemory(slot: Slot, bytes: number): Promise<void> {
    slot.moreBytes = Math.max(0, bytes - this.#limits.memoryBytes);
    const more = this.#slots.reduce((sum, { moreBytes }) => sum + moreBytes, 0);
    await this.#outer.limitMemory?.(toOuterBytes(this.#limits, this.#slots.length) + more);
    slot.cgroup.limitMemory(bytes);
  }

  dispose(): Promise<void> {
    return this.#outer.dispose();
  }
}

interface Nestable {
  readonly cgroups: CgroupLayout & { version: 1 | 2 };
  /** What the relay is told first. */
  readonly plan: string;
}

/** Whether this machine can have such cells at all; what it does not say the first look from inside does. */
function requireNestable(site: OciSite, { limits, slots, forker = FORKER }: NestSpec): Nestable {
  const { cgroups, rootless } = site.host;
  const profile = toSeccompProfile(process.arch);
  const table = syscallTable(process.arch);
  if (rootless) throw unenforceable('without root there is only one id to give');
  if (site.cli.traits.ownKernel) throw unenforceable('the runtime has a kernel of its own');
  if (cgroups.version === 'none') throw unenforceable('there are no cgroups for the limits of each run');
  if (profile === undefined || table === undefined)
    throw unenforceable(`no filter of system calls is known for ${process.arch}`);
  const walls = planWalls({
    limits,
    paths: site.paths,
    folders: new Set(site.paths.masked.filter((path) => statSync(path).isDirectory())),
    profile,
    table,
  });
  const { argv, env, touch } = fillRequest(forker, PATHS_IN_CELL, BASE_ENV);
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const words = [slots, touch ?? '', argv.length, ...argv, variables.length, ...variables];
  return { cgroups, plan: [...words, encodeWalls(walls, table)].join('\0') };
}

async function makeSlots(
  site: OciSite,
  outer: OciCell,
  of: { readonly cgroups: Nestable['cgroups']; readonly makers: readonly number[]; readonly limits: Limits },
): Promise<Slot[]> {
  const pids = await outer.hostPids();
  const slots: Slot[] = [];
  for (const [number, maker] of of.makers.entries()) {
    const pid = pids.get(maker);
    if (pid === undefined)
      throw unenforceable('who makes the runs of a slot cannot be found on this machine');
    const path = join(cgroupPathOf(site.instance.id), outer.id, `slot-${number}`);
    slots.push({ moreBytes: 0, cgroup: await SlotCgroup.create(of.cgroups, path, of.limits, [pid]) });
  }
  return slots;
}

function unenforceable(problem: string): HotcellError {
  return new HotcellError('POLICY_UNENFORCEABLE', `no walls can be made inside a cell: ${problem}`, {
    hint: 'Each run has a container of its own instead, which is slower.',
  });
}
