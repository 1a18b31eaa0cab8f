import { HotcellError } from '../../core/errors.ts';
import { imageOf, type Language, type LanguageTable } from '../../core/language.ts';
import type { BuiltImage, ImageEntry, ImageShelf } from '../../drivers/images/image-shelf.ts';
import {
  BUILDABLE,
  RECIPES as RECIPE_NAMES,
  WORKER_IMAGE,
  isBuildable,
  toBuiltTag,
  type Buildable,
} from '../../drivers/images/recipe.ts';
import type { OnProgress } from '../../drivers/images/shared-pulls.ts';
import { autoDrivers, kindOf, workerDrivers, type DriverName } from '../../drivers/registry.ts';
import { driversToTry } from '../drivers/choose-driver.ts';
import type { Config } from '../config/config.ts';
import { toLanguageTable } from '../config/language-table.ts';
import { openImages } from '../drivers/make-drivers.ts';
import { didYouMean } from '../config/nearest-name.ts';

export interface BuildOrder {
  /** Recipes, or languages that have one. None means all recipes that code runs in. */
  readonly names: readonly string[];
  readonly base?: string | undefined;
  readonly platform?: string | undefined;
}

/** Builds one image after the other and yields each when it is there. */
export async function* buildImages(
  config: Config,
  order: BuildOrder,
  onProgress: OnProgress,
): AsyncGenerator<BuiltImage> {
  const languages = toLanguageTable(config.languages);
  const names = toRecipes(order.names, languages);
  const { base, platform } = order;
  const { shelf } = await openShelf(config);
  for (const name of names) {
    if (name === WORKER_IMAGE) {
      const { buildWorkerImage } = await import('../fleet/fleet-image.ts');
      yield await buildWorkerImage(config, { base, platform, onProgress });
    } else yield await shelf.build({ name, base, platform }, onProgress);
  }
}

function toRecipes(names: readonly string[], languages: LanguageTable): readonly Buildable[] {
  if (names.length === 0) return BUILDABLE;
  return [...new Set(names.map((name) => toRecipe(name, languages)))];
}

function toRecipe(name: string, languages: LanguageTable): Buildable {
  const recipe = isBuildable(name) ? name : languages[name]?.recipe;
  if (recipe !== undefined && isBuildable(recipe)) return recipe;
  throw new HotcellError(
    'INVALID_REQUEST',
    `there is no image ${name} to build${didYouMean(name, RECIPE_NAMES)}`,
    {
      hint: `Name one of ${BUILDABLE.join(', ')}, or none to build them all; or ${WORKER_IMAGE}.`,
    },
  );
}

/** The image of one language. */
export interface LanguageImage {
  readonly language: string;
  /** Undefined for a language that no setting gives an image. */
  readonly image: string | undefined;
  readonly entry: ImageEntry | undefined;
  /** Commands, each of which gets an image for the language; the best first. */
  readonly commands: readonly string[];
}

/** The image that would be used for each language, and whether the engine has it. */
export async function listImages(config: Config): Promise<readonly LanguageImage[]> {
  return (await lookAtImages(config)).languages;
}

export interface ImageOverview {
  readonly languages: readonly LanguageImage[];
  /** Of the fleet; undefined where cells of workers are never made from images. */
  readonly worker: ImageEntry | undefined;
}

export async function lookAtImages(config: Config): Promise<ImageOverview> {
  const languages = toLanguageTable(config.languages);
  const { driver, shelf } = await openShelf(config);
  const entries = new Map((await shelf.list()).map((entry) => [entry.name, entry]));
  return {
    languages: listLanguages(languages, entries, shelf.command),
    worker: workerDrivers().includes(driver) ? entries.get(toBuiltTag(WORKER_IMAGE)) : undefined,
  };
}

function listLanguages(
  languages: LanguageTable,
  entries: ReadonlyMap<string, ImageEntry>,
  command: string,
): LanguageImage[] {
  return Object.entries(languages).map(([name, language]) => {
    const image = chooseImage(language, entries);
    const entry = image === undefined ? undefined : entries.get(image);
    return {
      language: name,
      image,
      entry,
      commands: toCommands(language, entry, command),
    };
  });
}

/** Of the driver that makes the cells here; where that one has no images, of the one that `auto` would take for them. */
async function openShelf(
  config: Config,
): Promise<{ readonly driver: DriverName; readonly shelf: ImageShelf }> {
  const withImages = (names: readonly DriverName[]): DriverName[] =>
    names.filter((name) => kindOf(name).traits.images);
  const own = withImages(driversToTry(config, process.platform));
  const candidates = own.length > 0 ? own : withImages(autoDrivers(process.platform));
  let failure: unknown;
  for (const driver of candidates) {
    try {
      return { driver, shelf: await openImages(driver, config) };
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** As ImageShelf.choose does, from what is known already. */
function chooseImage(language: Language, entries: ReadonlyMap<string, ImageEntry>): string | undefined {
  const { name, recipe } = imageOf(language);
  const built = recipe === undefined ? undefined : toBuiltTag(recipe);
  const hasBuilt = built !== undefined && entries.get(built)?.stored !== undefined;
  return hasBuilt ? built : (name ?? built);
}

function toCommands(language: Language, entry: ImageEntry | undefined, command: string): string[] {
  const { name, recipe } = imageOf(language);
  const build = recipe === undefined ? [] : [`hotcell build ${recipe}`];
  const pull = name === undefined ? [] : [`${command} pull ${name}`];
  if (entry?.stored === undefined) return [...build, ...pull];
  return entry.recipe === undefined ? pull : build;
}
