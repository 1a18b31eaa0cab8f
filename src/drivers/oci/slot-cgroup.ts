import type { Usage } from '../../core/exec.ts';
import type { Limits } from '../../core/limits.ts';
import type { Account } from '../agent/agent-exec.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { CellCgroup } from './cgroup.ts';

/** Who makes the runs and PID 1 of the run are in it, where a cell of its own has only its init. */
const OVERHEAD = { memoryBytes: 0, threads: 1, threadsPerProcess: 1 };

/** The cgroup of one slot. Runs inherit it one after the other, so what they use is what the counters grew by. */
export class SlotCgroup implements Account {
  readonly #cgroup: CellCgroup;
  readonly #memoryBytes: number;
  #cpuMsBefore = 0;
  #countsBefore: ReturnType<CellCgroup['counts']> = { memoryBytes: 0, processes: 0 };

  private constructor(cgroup: CellCgroup, memoryBytes: number) {
    this.#cgroup = cgroup;
    this.#memoryBytes = memoryBytes;
  }

  /** `path` is where it is made, with those who make its runs in it. */
  static async create(
    layout: CgroupLayout & { version: 1 | 2 },
    path: string,
    limits: Limits,
    makers: readonly number[],
  ): Promise<SlotCgroup> {
    const traits = { overhead: OVERHEAD, ownKernel: false, leaf: '' };
    const cgroup = await CellCgroup.create(layout, path, limits, traits);
    await cgroup.admit(makers);
    return new SlotCgroup(cgroup, limits.memoryBytes);
  }

  /** The next run has all of the limits, whatever the one before it used. */
  renew(): void {
    this.#cgroup.limitMemory(this.#memoryBytes);
    this.#cgroup.renew();
    this.#cpuMsBefore = this.#cgroup.usage().cpuMs;
    this.#countsBefore = this.#cgroup.counts();
  }

  limitMemory(bytes: number): void {
    this.#cgroup.limitMemory(bytes);
  }

  release(): void {
    this.#cgroup.lift();
  }

  usage(): Usage {
    const { cpuMs, peakMemoryBytes } = this.#cgroup.usage();
    const counts = this.#cgroup.counts();
    const before = this.#countsBefore;
    return {
      cpuMs: Math.max(0, cpuMs - this.#cpuMsBefore),
      peakMemoryBytes,
      reached: (['memoryBytes', 'processes'] as const).filter((limit) => counts[limit] > before[limit]),
    };
  }

  current(): ReturnType<CellCgroup['current']> {
    return { ...this.#cgroup.current(), cpuMs: this.usage().cpuMs };
  }

  close(): void {
    this.#cgroup.close();
  }
}
