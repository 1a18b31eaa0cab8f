import { release } from 'node:os';
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
  /** What a writable bind of it needs, so that it really does without set-user-id and devices. */
  readonly writableBind: readonly string[];
}

export function toTraits(runtime: RuntimeName, kernel = release()): RuntimeTraits {
  if (runtime === 'runsc') return { ownKernel: true, overhead: GVISOR_OVERHEAD, writableBind: [] };
  // crun heeds `nosuid` and `nodev` of a bind only with `ro`. The others take a call that kernels have since 5.12; without
  // it these are kept away by having no privileges and no way to any.
  const writableBind = runtime === 'crun' && isSince(kernel, 5, 12) ? ['rnosuid', 'rnodev'] : [];
  return { ownKernel: false, overhead: NO_OVERHEAD, writableBind };
}

function isSince(kernel: string, major: number, minor: number): boolean {
  const [first = 0, second = 0] = kernel.split('.').map(Number);
  return first > major || (first === major && second >= minor);
}
