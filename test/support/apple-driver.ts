import { fileURLToPath } from 'node:url';
import type { CellImage, CellSpec } from '../../src/core/cell.ts';
import type { Limits } from '../../src/core/limits.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { AppleDriver, type AppleOptions } from '../../src/drivers/apple/driver.ts';
import { specOf } from '../contract/cells.ts';
import { IMAGE, type AppleDouble } from './apple-double/apple-double.ts';

/** A driver whose `container` is the double. */
export function makeAppleDriver(
  double: Pick<AppleDouble, 'cli'>,
  options: Partial<AppleOptions> = {},
): AppleDriver {
  return new AppleDriver({
    cli: double.cli,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    recipes: fileURLToPath(new URL('../../images', import.meta.url)),
    languages: {},
    weaker: [],
    log: SILENT_LOG,
    onProgress: () => {},
    ...options,
  });
}

/** A cell that takes commands, from the image that has everything. */
export function idleSpec(limits: Partial<Limits> = {}, image?: CellImage): CellSpec {
  return { ...specOf(undefined, limits), image: image ?? { name: IMAGE, recipe: undefined } };
}
