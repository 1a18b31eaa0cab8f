import { HotcellError, toHotcellError } from '../core/errors.ts';
import { DRIVER_NAMES } from '../drivers/registry.ts';
import type { Config } from './config/config.ts';
import { makeDriver, SILENT_HOOKS } from './drivers/make-drivers.ts';

/** Whether fresh cells can be made inside a cell that waits. */
export interface NestReport {
  readonly asked: boolean;
  /** Why not; null where the walls stand. */
  readonly problem: string | null;
}

/** Opens one cell with slots, has its walls looked at from inside, and removes it. */
export async function inspectNests(config: Config, driverName: string | undefined): Promise<NestReport> {
  const asked = config.pool.nested;
  const name = DRIVER_NAMES.find((one) => one === driverName);
  try {
    if (name === undefined) throw new HotcellError('DRIVER_UNAVAILABLE', 'no driver works');
    const driver = await makeDriver(name, config, SILENT_HOOKS);
    try {
      if (driver.openNest === undefined)
        return { asked, problem: `the ${name} driver knows no cells with slots` };
      const nest = await driver.openNest({ name: 'doctor', limits: config.limits, slots: 1 });
      await nest.dispose();
    } finally {
      await driver.close();
    }
    return { asked, problem: null };
  } catch (error) {
    return { asked, problem: toHotcellError(error).message };
  }
}
