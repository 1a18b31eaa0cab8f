import type { CellImage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { LanguageTable } from '../../core/language.ts';
import { OTHER_BASES, RECIPES, readRecipe, recipeOfTag, toBuiltTag, type Buildable } from './recipe.ts';
import { SharedPulls, type OnProgress } from './shared-pulls.ts';
import { BASE_LABEL, RECIPE_LABEL, isOfPlatform, type StoredImage } from './stored-image.ts';

const FAILURE_KEPT_MS = 15_000;

export interface ImageShelfOptions {
  /** The folder images/. */
  readonly recipes: string;
  /** Names the setting that is at fault when an image cannot be had. */
  readonly languages: LanguageTable;
  /** How long a failed pull is not tried again. */
  readonly failureKeptMs?: number;
  readonly now?: () => number;
}

export interface ImageEntry {
  readonly name: string;
  /** Undefined while the engine does not have it. */
  readonly stored: StoredImage | undefined;
  /** The recipe, for an image of ours. */
  readonly recipe: Buildable | undefined;
  /** It was built from a recipe other than the present one. */
  readonly outdated: boolean;
  /** The languages that name it. */
  readonly languages: readonly string[];
}

/** What a recipe needs beside its own files. */
export interface BuildAddition {
  /** A file of the host, by its name in the context. */
  readonly name: string;
  readonly path: string;
  readonly buildArgs: Readonly<Record<string, string>>;
}

export interface BuildRequest {
  readonly name: Buildable;
  readonly base?: string | undefined;
  readonly platform?: string | undefined;
  readonly tag?: string | undefined;
  /** Asked for when it is known which platform the image will be for. */
  readonly addition?: ((platform: string) => Promise<BuildAddition>) | undefined;
}

export interface PullOrder {
  readonly platform?: string | undefined;
  /** What named the image, if no language did. */
  readonly setting?: string;
  readonly recipe?: Buildable;
}

export interface BuiltImage extends StoredImage {
  readonly name: Buildable;
  readonly image: string;
  readonly base: string;
}

/** The images that one engine has. How it looks for them, pulls and builds is its own affair. */
export abstract class ImageShelf {
  /** The command with which people pull by hand, such as `docker`. */
  abstract readonly command: string;
  protected readonly recipes: string;
  protected readonly languages: LanguageTable;
  protected readonly retryAfterSeconds: number;
  readonly #pulls: SharedPulls;

  constructor({
    recipes,
    languages,
    failureKeptMs = FAILURE_KEPT_MS,
    now = () => performance.now(),
  }: ImageShelfOptions) {
    this.recipes = recipes;
    this.languages = languages;
    this.retryAfterSeconds = Math.ceil(failureKeptMs / 1000);
    this.#pulls = new SharedPulls({
      failureKeptMs,
      now,
      // An engine that does not answer is another matter: the next caller asks it again.
      isLasting: (error) => error instanceof HotcellError && error.code === 'IMAGE_UNAVAILABLE',
    });
  }

  /** Throws IMAGE_UNAVAILABLE for what cannot be a name. */
  abstract find(name: string): Promise<StoredImage | undefined>;
  /** From a registry. */
  protected abstract fetch(image: string, onProgress: OnProgress, order: PullOrder): Promise<void>;
  protected abstract make(
    request: BuildRequest & { readonly tag: string },
    onProgress: OnProgress,
  ): Promise<{ readonly base: string }>;
  /** Is this one built without anybody asking for it, where a cell needs it? */
  protected abstract buildsUnasked(recipe: Buildable): boolean;

  async has(name: string): Promise<boolean> {
    return (await this.find(name)) !== undefined;
  }

  /** The name of the image to use: ours where it was built, otherwise the one of the registry. */
  async choose(image: CellImage): Promise<string> {
    return (await this.#look(image)).name;
  }

  async #look(image: CellImage): Promise<{ readonly name: string; readonly isThere: boolean }> {
    const built = image.recipe === undefined ? undefined : toBuiltTag(image.recipe);
    if (built !== undefined && (await this.has(built))) return { name: built, isThere: true };
    const name = image.name ?? built;
    if (name !== undefined) return { name, isThere: false };
    throw new HotcellError('IMAGE_UNAVAILABLE', 'the language has no image', {
      hint: 'Set languages.<name>.image to an image that has the interpreter.',
    });
  }

  /** Gets the image that cells are to be made from, wherever it comes from, and says what it is called. */
  async obtain(image: CellImage, onProgress: OnProgress): Promise<string> {
    const { name, isThere } = await this.#look(image);
    if (isThere) return name;
    const recipe = recipeOfTag(name);
    if (recipe !== undefined && this.buildsUnasked(recipe)) await this.#ensureBuilt(recipe, onProgress);
    else await this.ensure(name, onProgress);
    return name;
  }

  /** Pulls what is missing. Callers who want the same image share one pull, and for a while its failure. */
  ensure(name: string, onProgress: OnProgress): Promise<void> {
    return this.#pulls.join(name, onProgress, async (tellAll) => {
      if (!(await this.has(name))) await this.pull(name, tellAll);
    });
  }

  async pull(image: string, onProgress: OnProgress, order: PullOrder = {}): Promise<void> {
    const recipe = recipeOfTag(image);
    // SECURITY: nobody else can give us what we build ourselves.
    if (recipe !== undefined) throw notBuilt(image, recipe);
    await this.fetch(image, onProgress, order);
  }

  /** Callers who want the same image share one build, and for a while its failure. */
  #ensureBuilt(name: Buildable, onProgress: OnProgress): Promise<void> {
    const tag = toBuiltTag(name);
    return this.#pulls.join(tag, onProgress, async (tellAll) => {
      if (await this.has(tag)) return;
      tellAll(`building ${tag}`);
      await this.build({ name, base: await this.#localBase(name) }, tellAll);
    });
  }

  /** Undefined: the usual one, which is there or will be pulled. */
  async #localBase(name: Buildable): Promise<string | undefined> {
    const other = OTHER_BASES[name];
    if (other === undefined) return undefined;
    const { base } = await readRecipe(this.recipes, name);
    return !(await this.has(base)) && (await this.has(other)) ? other : undefined;
  }

  async build(request: BuildRequest, onProgress: OnProgress): Promise<BuiltImage> {
    const { name, tag = toBuiltTag(name) } = request;
    const { base } = await this.make({ ...request, tag }, onProgress);
    // What was known to be missing may now be there.
    this.#pulls.forgetFailures();
    const stored = await this.find(tag);
    if (stored === undefined) throw new Error(`the engine has built ${tag} and does not know it`);
    return { ...stored, name, image: tag, base };
  }

  /** Our own images and those that the languages name, whether or not the engine has them. */
  async list(): Promise<ImageEntry[]> {
    const named = Object.values(this.languages).flatMap(({ image }) => image ?? []);
    const names = [...new Set([...RECIPES.map(toBuiltTag), ...named])];
    return Promise.all(names.map((name) => this.describe(name)));
  }

  async describe(name: string): Promise<ImageEntry> {
    const recipe = recipeOfTag(name);
    const stored = await this.find(name);
    const outdated =
      recipe !== undefined &&
      stored !== undefined &&
      stored.labels[RECIPE_LABEL] !== (await readRecipe(this.recipes, recipe)).hash;
    return { name, stored, recipe, outdated, languages: this.languagesOf(name) };
  }

  /**
   * An image of ours that has been built from this recipe and base, and is younger than the base: building it again would
   * make the same. Undefined otherwise.
   */
  async findCurrent({
    name,
    base,
    platform,
    tag = toBuiltTag(name),
  }: BuildRequest): Promise<BuiltImage | undefined> {
    const recipe = await readRecipe(this.recipes, name);
    const from = base ?? recipe.base;
    const stored = await this.find(tag);
    if (stored?.labels[RECIPE_LABEL] !== recipe.hash || stored.labels[BASE_LABEL] !== from) return undefined;
    const below = await this.find(from);
    const isOlder = below !== undefined && Date.parse(below.created) > Date.parse(stored.created);
    return isOlder || !isOfPlatform(stored.platform, platform)
      ? undefined
      : { ...stored, name, image: tag, base: from };
  }

  protected languagesOf(image: string): string[] {
    const entries = Object.entries(this.languages);
    return entries.filter(([, language]) => language.image === image).map(([name]) => name);
  }
}

function notBuilt(image: string, recipe: Buildable): HotcellError {
  return new HotcellError('IMAGE_UNAVAILABLE', `image ${image} has not been built on this engine`, {
    hint: `Build it: hotcell build ${recipe}`,
  });
}
