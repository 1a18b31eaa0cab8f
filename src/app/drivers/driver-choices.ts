import { HotcellError } from '../../core/errors.ts';
import { DRIVER_NAMES, kindOf, workerDrivers, type DriverName } from '../../drivers/registry.ts';

/** For help texts. */
export const ALL_DRIVERS = DRIVER_NAMES.join(', ').replace(/, (?=[^,]*$)/, ' or ');

/** What may be asked to make the cells of workers. */
export const WORKER_DRIVERS: readonly ['auto', ...DriverName[]] = ['auto', ...workerDrivers()];

export function requireWorkerDriver(name: string): (typeof WORKER_DRIVERS)[number] {
  const known = WORKER_DRIVERS.find((one) => one === name);
  if (known !== undefined) return known;
  throw new HotcellError('INTERNAL', `the driver ${name} makes no cells for workers`);
}

/** Those who are made from an image; the others get the agent from a folder of this machine. */
export function isMadeFromImage(name: string): boolean {
  return kindOf(name).traits.images;
}
