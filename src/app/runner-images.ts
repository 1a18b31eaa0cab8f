import type { CellImage } from '../core/cell.ts';
import { Engine } from '../drivers/docker/engine.ts';
import type { ImageStore } from '../drivers/docker/images.ts';
import { RUNNER_BASE } from '../drivers/docker/recipe.ts';
import type { WorkbenchImages } from '../workbench/options.ts';
import type { Config } from './config.ts';
import { dockerEndpoint } from './docker-endpoint.ts';
import { makeImageStore } from './images.ts';
import { toLanguageTable } from './language-table.ts';

export const RUNNER_IMAGE: CellImage = { name: undefined, recipe: RUNNER_BASE };

export function usesImages(driver: string): boolean {
  return driver === 'docker' || driver === 'apple';
}

/** What cells of run_code are made from; undefined for drivers without images. */
export function runnerImagesFor(driver: string, config: Config): WorkbenchImages | undefined {
  if (!usesImages(driver)) return undefined;
  // Apple's driver gets what is missing itself when it makes the cell.
  return driver === 'docker'
    ? makeRunnerImages(config)
    : { base: RUNNER_IMAGE, ensure: () => Promise.resolve() };
}

/** The images of run_code in a Docker engine. Nothing is asked of it before one is needed. */
function makeRunnerImages(config: Config): WorkbenchImages {
  let opening: Promise<ImageStore> | undefined;
  const open = async (): Promise<ImageStore> =>
    makeImageStore(await Engine.connect(dockerEndpoint(config)), toLanguageTable(config.languages));
  const store = (): Promise<ImageStore> => {
    const current = (opening ??= open());
    current.catch(() => (opening = undefined));
    return current;
  };
  return {
    base: RUNNER_IMAGE,
    ensure: async (image: CellImage, onProgress) => {
      const images = await store();
      if (image.recipe === RUNNER_BASE) await images.ensureBuilt(RUNNER_BASE, onProgress);
      else await images.ensure(await images.choose(image), onProgress);
    },
  };
}
