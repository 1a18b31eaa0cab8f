/** `/proc` entries that tell about the host or reach into the kernel. */
export const MASKED_PATHS = [
  '/proc/acpi',
  '/proc/asound',
  '/proc/cmdline',
  '/proc/config.gz',
  '/proc/interrupts',
  '/proc/kallsyms',
  '/proc/kcore',
  '/proc/keys',
  '/proc/key-users',
  '/proc/kmsg',
  '/proc/kpagecount',
  '/proc/kpageflags',
  '/proc/latency_stats',
  '/proc/modules',
  '/proc/pressure',
  '/proc/sched_debug',
  '/proc/scsi',
  '/proc/slabinfo',
  '/proc/timer_list',
  '/proc/timer_stats',
];

/** What engines mask below `/sys` by themselves, unless they are told what to mask. */
export const MASKED_SYS_PATHS = ['/sys/devices/virtual/powercap', '/sys/firmware'];

export const READ_ONLY_PATHS = ['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'];

export interface MaskablePaths {
  readonly masked: readonly string[];
  readonly readOnly: readonly string[];
}

/** The paths that this kernel has: a runtime spends a mount or an error on each, so ask for no others. */
export function toMaskablePaths(exists: (path: string) => boolean): MaskablePaths {
  return { masked: MASKED_PATHS.filter(exists), readOnly: READ_ONLY_PATHS.filter(exists) };
}
