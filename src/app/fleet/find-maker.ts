import { HotcellError } from '../../core/errors.ts';
import { workerDrivers, type DriverName } from '../../drivers/registry.ts';
import type { Config } from '../config/config.ts';
import { probeDriver } from '../drivers/choose-driver.ts';
import { isMadeFromImage, type WORKER_DRIVERS } from '../drivers/driver-choices.ts';
import { SILENT_HOOKS } from '../drivers/make-drivers.ts';

export interface MakerWish {
  readonly driver: (typeof WORKER_DRIVERS)[number];
  /** Only one whose cells are made from an image. */
  readonly image?: boolean;
}

export type FoundMaker =
  { readonly driver: DriverName } | { readonly driver: undefined; readonly error: HotcellError };

/** Whose cells a build is for: the driver that was asked for, or the first that can serve here, in the order of a run. */
export async function findMaker(config: Config, { driver, image = false }: MakerWish): Promise<FoundMaker> {
  // A folder can be filled whether its cells can be made here or not.
  if (driver !== 'auto' && !isMadeFromImage(driver)) return { driver };
  const fit = workerDrivers().filter((name) => !image || isMadeFromImage(name));
  const problems: string[] = [];
  const remedies: string[] = [];
  for (const name of driver === 'auto' ? fit : [driver]) {
    const probe = await probeDriver(name, config, SILENT_HOOKS);
    if (probe.ok) return { driver: name };
    problems.push(`the ${name} driver cannot serve: ${probe.problem}`);
    remedies.push(probe.remedy);
  }
  for (const name of workerDrivers())
    if (!isMadeFromImage(name))
      remedies.push(`Cells of ${name} need no engine and no image: hotcell fleet build --driver ${name}`);
  return {
    driver: undefined,
    error: new HotcellError('DRIVER_UNAVAILABLE', problems.join('; '), { hint: remedies.join('\n') }),
  };
}
