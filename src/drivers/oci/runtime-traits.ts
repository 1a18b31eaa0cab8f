import type { RuntimeName } from './runtime.ts';

const MiB = 1024 * 1024;

/** Where a runtime departs from "the processes of a cell are processes of the host". */
export interface RuntimeTraits {
  /**
   * The runtime brings a kernel of its own, which counts the cell's processes and filters its system calls itself;
   * what the host's kernel sees are the threads of that kernel.
   */
  readonly ownKernel: boolean;
  /** What the host's cgroup must grant on top of the cell's limits, so that the runtime itself can live in there. */
  readonly overhead: Overhead;
}

export interface Overhead {
  readonly memoryBytes: number;
  readonly threads: number;
  /** Threads on the host for each process or thread of the cell. */
  readonly threadsPerProcess: number;
}

export const NO_OVERHEAD: Overhead = { memoryBytes: 0, threads: 0, threadsPerProcess: 1 };

/**
 * gVisor: an idle cell has about 16 MiB and 90 threads of the runtime's own, a fork bomb at 64 processes 500 to over 1500.
 * Generous, because a runtime that is refused a thread ends at once, and the cell with it.
 */
const GVISOR_OVERHEAD: Overhead = { memoryBytes: 64 * MiB, threads: 512, threadsPerProcess: 64 };

export function toTraits(runtime: RuntimeName): RuntimeTraits {
  return runtime === 'runsc'
    ? { ownKernel: true, overhead: GVISOR_OVERHEAD }
    : { ownKernel: false, overhead: NO_OVERHEAD };
}
