const MiB = 1024 * 1024;

/** What the host's cgroup must grant on top of a cell's limits, so that the runtime itself can live in there. */
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
export const GVISOR_OVERHEAD: Overhead = { memoryBytes: 64 * MiB, threads: 512, threadsPerProcess: 64 };
