import { HotcellError } from '../core/errors.ts';
import { imageOf } from '../core/language.ts';
import { AppleImageStore } from '../drivers/apple/image-store.ts';
import { probeApple } from '../drivers/apple/probe.ts';
import type { Config } from './config.ts';
import { toLanguageTable } from './language-table.ts';
import { RECIPES } from './make-drivers.ts';

/** The images of Apple's container, where that is what makes the cells; undefined where it is another driver. */
export async function openAppleStore(config: Config): Promise<AppleImageStore | undefined> {
  const isAsked = config.driver === 'apple';
  if (!isAsked && (config.driver !== 'auto' || process.platform !== 'darwin')) return undefined;
  const { probe, cli } = await probeApple({ cli: config.apple.cli });
  if (cli !== undefined)
    return new AppleImageStore(cli, { recipes: RECIPES, languages: toLanguageTable(config.languages) });
  if (!isAsked || probe.ok) return undefined;
  throw new HotcellError('DRIVER_UNAVAILABLE', probe.problem, { hint: probe.remedy });
}

/** For `doctor`: whether each language has its image. */
export async function inspectAppleImages(config: Config, store: AppleImageStore) {
  const languages = Object.entries(toLanguageTable(config.languages));
  return Promise.all(
    languages.map(async ([name, language]) => {
      const image = imageOf(language);
      if ((await store.images.stored(image)) !== undefined) return { name, available: true };
      const problem = `image ${image.name ?? image.recipe ?? '(none)'} is not there yet; the start gets it`;
      return { name, available: false, problem };
    }),
  );
}
