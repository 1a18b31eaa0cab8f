import type { ReachableLimit, Usage } from '../../core/exec.ts';
import { figuresOf, membersOf } from './process-group.ts';
import { takenBelow, takenUnnamed } from './taken-disk.ts';

/** How often memory and processes are looked at, for one process and for many. */
const LOOK_MS = 20;
const LOOK_AT_MANY_MS = 40;
const DISK_MS = 250;

export interface WatchOptions {
  readonly pid: number;
  /** It may have more processes than one. */
  readonly forks: boolean;
  readonly memoryBytes: () => number;
  readonly processes: number;
  readonly diskBytes: number;
  readonly workdir: string;
  /** Called once, for the first limit that is passed. */
  onPassed(limit: 'memoryBytes' | 'processes' | 'diskBytes'): void;
}

/** Looks at a command again and again, because nobody else counts for it, until it is told that it has ended. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #timers: NodeJS.Timeout[];
  readonly #reached = new Set<ReachableLimit>();
  #cpuMs = 0;
  #peakBytes = 0;
  #diskShare = 0;
  #measuring = false;
  #passed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => this.#look(), options.forks ? LOOK_AT_MANY_MS : LOOK_MS),
      setInterval(() => void this.#lookAtDisk(), DISK_MS),
    ];
  }

  usage(): Usage {
    return {
      cpuMs: this.#cpuMs,
      peakMemoryBytes: this.#peakBytes === 0 ? undefined : this.#peakBytes,
      reached: [...this.#reached],
      diskShare: Math.min(1, this.#diskShare),
    };
  }

  /** What it takes now. */
  current(): { readonly memoryBytes: number; readonly processes: number; readonly cpuMs: number } {
    const { memoryBytes, threads } = this.#look();
    return { memoryBytes, processes: threads, cpuMs: this.#cpuMs };
  }

  /** A last look, at what the first process left behind. */
  end(): void {
    for (const timer of this.#timers) clearInterval(timer);
    if (!this.#options.forks) return;
    // The first process itself is gone by now.
    if (this.#look().threads + 1 >= this.#options.processes) this.#reached.add('processes');
  }

  /** For a command that failed: perhaps for want of disk. */
  async lookAtDiskOnce(): Promise<void> {
    this.#measuring = false;
    await this.#lookAtDisk();
  }

  #pids(): number[] {
    return this.#options.forks ? membersOf(this.#options.pid) : [this.#options.pid];
  }

  #look(): ReturnType<typeof figuresOf> {
    const figures = figuresOf(this.#pids());
    const { memoryBytes, threads, cpuMs } = figures;
    this.#cpuMs = Math.max(this.#cpuMs, cpuMs);
    this.#peakBytes = Math.max(this.#peakBytes, memoryBytes);
    if (threads >= this.#options.processes) this.#reached.add('processes');
    if (memoryBytes > this.#options.memoryBytes()) {
      this.#reached.add('memoryBytes');
      this.#pass('memoryBytes');
    }
    if (threads > this.#options.processes) this.#pass('processes');
    return figures;
  }

  async #lookAtDisk(): Promise<void> {
    if (this.#measuring) return;
    this.#measuring = true;
    try {
      const { workdir, diskBytes } = this.#options;
      const taken = (await takenBelow(workdir, diskBytes)) + takenUnnamed(this.#pids());
      this.#diskShare = Math.max(this.#diskShare, taken / diskBytes);
      if (taken > diskBytes) this.#pass('diskBytes');
    } finally {
      this.#measuring = false;
    }
  }

  #pass(limit: 'memoryBytes' | 'processes' | 'diskBytes'): void {
    if (this.#passed) return;
    this.#passed = true;
    this.#options.onPassed(limit);
  }
}
