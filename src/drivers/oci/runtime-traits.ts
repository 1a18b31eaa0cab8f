import { GVISOR_OVERHEAD, NO_OVERHEAD, type Overhead } from '../linux/runtime-overhead.ts';
import type { RuntimeName } from './runtime.ts';

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

export function toTraits(runtime: RuntimeName): RuntimeTraits {
  return runtime === 'runsc'
    ? { ownKernel: true, overhead: GVISOR_OVERHEAD }
    : { ownKernel: false, overhead: NO_OVERHEAD };
}
