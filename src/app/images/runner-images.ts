import type { CellImage } from '../../core/cell.ts';
import type { ImageShelf } from '../../drivers/images/image-shelf.ts';
import { RUNNER_BASE } from '../../drivers/images/recipe.ts';
import type { WorkbenchImages } from '../../workbench/options.ts';
import type { Config } from '../config/config.ts';
import { openImages } from '../drivers/make-drivers.ts';

export const RUNNER_IMAGE: CellImage = { name: undefined, recipe: RUNNER_BASE };

/** What cells of run_code are made from. Nothing is asked of an engine before one is needed. */
export function runnerImages(driver: string, config: Config): WorkbenchImages {
  let opening: Promise<ImageShelf> | undefined;
  const open = (): Promise<ImageShelf> => {
    const current = (opening ??= openImages(driver, config));
    current.catch(() => (opening = undefined));
    return current;
  };
  return {
    base: RUNNER_IMAGE,
    ensure: async (image, onProgress) => void (await (await open()).obtain(image, onProgress)),
  };
}
