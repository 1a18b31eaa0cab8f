import { HotcellError } from '../core/errors.ts';
import { imageOf, type Language, type LanguageTable } from '../core/language.ts';
import { dockerCommandFor } from '../drivers/docker/docker-command.ts';
import { Engine } from '../drivers/docker/engine.ts';
import { ImageStore, type BuiltImage, type ImageEntry } from '../drivers/docker/images.ts';
import {
  BUILDABLE,
  RECIPES as RECIPE_NAMES,
  WORKER_IMAGE,
  isBuildable,
  toBuiltTag,
  type Buildable,
} from '../drivers/docker/recipe.ts';
import type { OnProgress } from '../drivers/docker/shared-pulls.ts';
import { openAppleStore } from './apple-images.ts';
import type { Config } from './config.ts';
import { dockerEndpoint } from './docker-endpoint.ts';
import { toLanguageTable } from './language-table.ts';
import { RECIPES } from './make-drivers.ts';
import { didYouMean } from './nearest-name.ts';

export function makeImageStore(engine: Engine, languages: LanguageTable): ImageStore {
  return new ImageStore(engine, { recipes: RECIPES, languages });
}

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
  const { store } = await openStore(config, languages);
  for (const name of names) {
    if (name === WORKER_IMAGE) {
      const { buildWorkerImage } = await import('./fleet-image.ts');
      yield await buildWorkerImage(config, { base, platform, onProgress });
    } else yield await store.build({ name, base, platform }, onProgress);
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
  const { store, command } = await openStore(config, languages);
  const entries = new Map((await store.list()).map((entry) => [entry.name, entry]));
  return {
    languages: listLanguages(languages, entries, command),
    worker: entries.get(toBuiltTag(WORKER_IMAGE)),
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

/** What is asked for images here, and how people would ask it. */
async function openStore(config: Config, languages: LanguageTable) {
  const apple = await openAppleStore(config);
  if (apple !== undefined) return { store: apple, command: 'container image' };
  const endpoint = dockerEndpoint(config);
  return {
    store: makeImageStore(await Engine.connect(endpoint), languages),
    command: dockerCommandFor(endpoint),
  };
}

/** As ImageStore.choose does, from what is known already. */
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
