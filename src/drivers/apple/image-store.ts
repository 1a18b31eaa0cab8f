import type { LanguageTable } from '../../core/language.ts';
import { RECIPE_LABEL } from '../docker/build-image.ts';
import type { BuildRequest, BuiltImage, ImageEntry } from '../docker/images.ts';
import { BUILDABLE, readRecipe, recipeOfTag, toBuiltTag } from '../docker/recipe.ts';
import type { OnProgress } from '../docker/shared-pulls.ts';
import type { StoredImage } from '../docker/stored-image.ts';
import type { ContainerCli } from './cli.ts';
import { AppleImages } from './images.ts';
import type { InspectedImage } from './shapes.ts';

/** For people, who build and list: the images of `container` in the words of those of an engine. */
export class AppleImageStore {
  readonly images: AppleImages;
  readonly #options: { readonly recipes: string; readonly languages: LanguageTable };

  constructor(cli: ContainerCli, options: { readonly recipes: string; readonly languages: LanguageTable }) {
    this.images = new AppleImages(cli, { recipes: options.recipes });
    this.#options = options;
  }

  async build({ name, base, platform }: BuildRequest, onProgress: OnProgress): Promise<BuiltImage> {
    const recipe = await readRecipe(this.#options.recipes, name);
    const built = await this.images.build({ name, base, platform }, onProgress);
    return { ...toStored(built), name, image: toBuiltTag(name), base: base ?? recipe.base };
  }

  /** Our own images and those that the languages name, whether or not they are there. */
  list(): Promise<ImageEntry[]> {
    const named = Object.values(this.#options.languages).flatMap(({ image }) => image ?? []);
    const names = [...new Set([...BUILDABLE.map(toBuiltTag), ...named])];
    return Promise.all(names.map((name) => this.#describe(name)));
  }

  async #describe(name: string): Promise<ImageEntry> {
    const { languages, recipes } = this.#options;
    const recipe = recipeOfTag(name);
    const found = await this.images.find(name);
    const stored = found === undefined ? undefined : toStored(found);
    const outdated =
      recipe !== undefined &&
      stored !== undefined &&
      stored.labels[RECIPE_LABEL] !== (await readRecipe(recipes, recipe)).hash;
    const users = Object.entries(languages).filter(([, { image }]) => image === name);
    return { name, stored, recipe, outdated, languages: users.map(([language]) => language) };
  }
}

/** An image may be there for several kinds of processor; the first is the one that was asked for. */
function toStored({ id, configuration, variants }: InspectedImage): StoredImage {
  const [variant] = variants;
  return {
    id: `sha256:${id}`,
    sizeBytes: variant?.size ?? 0,
    created: configuration.creationDate,
    platform: variant === undefined ? '' : `${variant.platform.os}/${variant.platform.architecture}`,
    labels: { ...variant?.config.config?.Labels },
  };
}
