const MiB = 1024 * 1024;
const LEAST_MEMORY_MIB = 200;

/** Of the CLI: it has no fractions, and a cell without a CPU would not run. */
export function toWholeCpus(cpus: number): number {
  return Math.max(1, Math.ceil(cpus));
}

/** It refuses less: the virtual machine would not start. */
export function toMemoryMiB(bytes: number): number {
  return Math.max(LEAST_MEMORY_MIB, Math.floor(bytes / MiB));
}
