import type Docker from 'dockerode';
import type { CellImage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { LanguageTable } from '../../core/language.ts';
import { BASE_LABEL, RECIPE_LABEL, buildImage, type BuildAddition } from './build-image.ts';
import { dockerCommandFor } from './docker-command.ts';
import { isRefusal, type CallOptions, type Engine } from './engine.ts';
import { parseImageName, type ImageName } from './image-name.ts';
import { toPullError, type PullFailure } from './image-problem.ts';
import { pullImage, whyNotPulled } from './pull-image.ts';
import { OTHER_BASES, RECIPES, readRecipe, recipeOfTag, toBuiltTag, type Buildable } from './recipe.ts';
import { SharedPulls, type OnProgress } from './shared-pulls.ts';
import { isOfPlatform, toStoredImage, type StoredImage } from './stored-image.ts';

const PULL_SILENCE_MS = 90_000;
/** Longer: a package manager that works on something large says nothing meanwhile. */
const BUILD_SILENCE_MS = 600_000;
const PROGRESS_EVERY_MS = 1_000;
const FAILURE_KEPT_MS = 15_000;

export interface ImageStoreOptions {
  /** The folder images/. */
  readonly recipes: string;
  /** Names the setting that is at fault when an image cannot be had. */
  readonly languages: LanguageTable;
  readonly pullSilenceMs?: number;
  readonly buildSilenceMs?: number;
  /** How long a failed pull is not tried again. */
  readonly failureKeptMs?: number;
  readonly progressEveryMs?: number;
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

export interface BuildRequest {
  readonly name: Buildable;
  readonly base?: string | undefined;
  readonly platform?: string | undefined;
  readonly tag?: string | undefined;
  /** Asked for when it is known which platform the image will be for. */
  readonly addition?: ((platform: string) => Promise<BuildAddition>) | undefined;
}

interface PullOrder {
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

/** The images of one engine. */
export class ImageStore {
  readonly #engine: Engine;
  readonly #options: Required<ImageStoreOptions>;
  readonly #pulls: SharedPulls;

  constructor(engine: Engine, options: ImageStoreOptions) {
    this.#engine = engine;
    this.#options = {
      pullSilenceMs: PULL_SILENCE_MS,
      buildSilenceMs: BUILD_SILENCE_MS,
      failureKeptMs: FAILURE_KEPT_MS,
      progressEveryMs: PROGRESS_EVERY_MS,
      now: () => performance.now(),
      ...options,
    };
    this.#pulls = new SharedPulls({
      failureKeptMs: this.#options.failureKeptMs,
      now: () => this.#options.now(),
      // An engine that does not answer is another matter: the next caller asks it again.
      isLasting: (error) => error instanceof HotcellError && error.code === 'IMAGE_UNAVAILABLE',
    });
  }

  async has(name: string): Promise<boolean> {
    return (await this.find(name)) !== undefined;
  }

  async find(name: string): Promise<StoredImage | undefined> {
    this.#parse(name);
    try {
      return toStoredImage(
        await this.#engine.call(`look for image ${name}`, (docker, { abortSignal }) => {
          const options: Docker.ImageInspectOptions & CallOptions = { abortSignal };
          return docker.getImage(name).inspect(options);
        }),
      );
    } catch (error) {
      if (isRefusal(error, 404)) return undefined;
      throw error;
    }
  }

  /** The name of the image to use: ours where it was built, otherwise the one of the registry. */
  async choose(image: CellImage): Promise<string> {
    const built = image.recipe === undefined ? undefined : toBuiltTag(image.recipe);
    if (built !== undefined && (await this.has(built))) return built;
    const name = image.name ?? built;
    if (name !== undefined) return name;
    throw new HotcellError('IMAGE_UNAVAILABLE', 'the language has no image', {
      hint: 'Set languages.<name>.image to an image that has the interpreter.',
    });
  }

  /** Pulls what is missing. Callers who want the same image share one pull, and for a while its failure. */
  ensure(name: string, onProgress: OnProgress): Promise<void> {
    return this.#pulls.join(name, onProgress, async (tellAll) => {
      if (!(await this.has(name))) await this.pull(name, tellAll);
    });
  }

  /** Builds what is missing. Callers who want the same image share one build, and for a while its failure. */
  ensureBuilt(name: Buildable, onProgress: OnProgress): Promise<void> {
    const tag = toBuiltTag(name);
    return this.#pulls.join(tag, onProgress, async (tellAll) => {
      if (await this.has(tag)) return;
      tellAll(`building ${tag}, once`);
      await this.build({ name, base: await this.#localBase(name) }, tellAll);
    });
  }

  /** Undefined: the usual one, which is there or will be pulled. */
  async #localBase(name: Buildable): Promise<string | undefined> {
    const other = OTHER_BASES[name];
    if (other === undefined) return undefined;
    const { base } = await readRecipe(this.#options.recipes, name);
    return !(await this.has(base)) && (await this.has(other)) ? other : undefined;
  }

  async pull(image: string, onProgress: OnProgress, order: PullOrder = {}): Promise<void> {
    const name = this.#parse(image);
    const recipe = recipeOfTag(image);
    // SECURITY: nobody else can give us what we build ourselves.
    if (recipe !== undefined) {
      throw new HotcellError('IMAGE_UNAVAILABLE', `image ${image} has not been built on this engine`, {
        hint: `Build it: hotcell build ${recipe}`,
      });
    }
    const { pullSilenceMs: silenceMs, progressEveryMs, now } = this.#options;
    const { platform } = order;
    try {
      await pullImage(this.#engine, { image, name, platform, silenceMs, progressEveryMs, now, onProgress });
    } catch (error) {
      const why = whyNotPulled(error);
      throw why === undefined ? error : this.#failed(image, order, { ...why, cause: error });
    }
  }

  async build(request: BuildRequest, onProgress: OnProgress): Promise<BuiltImage> {
    const { name, platform, tag = toBuiltTag(request.name) } = request;
    const recipe = await readRecipe(this.#options.recipes, name);
    const base = request.base ?? recipe.base;
    const { platform: has } = await this.#ensureBase(
      base,
      { platform, setting: '--base', recipe: name },
      onProgress,
    );
    const addition = await request.addition?.(platform ?? has);
    const onLine = (line: string): void => onProgress(`building ${tag}: ${line}`);
    const silenceMs = this.#options.buildSilenceMs;
    await buildImage(this.#engine, { name, recipe, base, platform, tag, silenceMs, addition, onLine });
    // What was known to be missing may now be there.
    this.#pulls.forgetFailures();
    const stored = await this.find(tag);
    if (stored === undefined) throw new Error(`the engine has built ${tag} and does not know it`);
    return { ...stored, name, image: tag, base };
  }

  /** A base that is there is used as it is, so that a local one needs no registry. */
  async #ensureBase(base: string, order: PullOrder, onProgress: OnProgress): Promise<StoredImage> {
    const stored = await this.find(base);
    if (stored !== undefined && isOfPlatform(stored.platform, order.platform)) return stored;
    await this.pull(base, onProgress, order);
    const pulled = await this.find(base);
    if (pulled === undefined) throw new Error(`the engine has pulled ${base} and does not know it`);
    return pulled;
  }

  /** Our own images and those that the languages name, whether or not the engine has them. */
  async list(): Promise<ImageEntry[]> {
    const named = Object.values(this.#options.languages).flatMap(({ image }) => image ?? []);
    const names = [...new Set([...RECIPES.map(toBuiltTag), ...named])];
    return Promise.all(names.map((name) => this.describe(name)));
  }

  async describe(name: string): Promise<ImageEntry> {
    const recipe = recipeOfTag(name);
    const stored = await this.find(name);
    const outdated =
      recipe !== undefined &&
      stored !== undefined &&
      stored.labels[RECIPE_LABEL] !== (await readRecipe(this.#options.recipes, recipe)).hash;
    return { name, stored, recipe, outdated, languages: this.#languagesOf(name) };
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
    const recipe = await readRecipe(this.#options.recipes, name);
    const from = base ?? recipe.base;
    const stored = await this.find(tag);
    if (stored?.labels[RECIPE_LABEL] !== recipe.hash || stored.labels[BASE_LABEL] !== from) return undefined;
    const below = await this.find(from);
    const isOlder = below !== undefined && Date.parse(below.created) > Date.parse(stored.created);
    return isOlder || !isOfPlatform(stored.platform, platform)
      ? undefined
      : { ...stored, name, image: tag, base: from };
  }

  #languagesOf(image: string): string[] {
    const entries = Object.entries(this.#options.languages);
    return entries.filter(([, language]) => language.image === image).map(([name]) => name);
  }

  #parse(name: string): ImageName {
    const parsed = parseImageName(name);
    if (parsed !== undefined) return parsed;
    throw this.#failed(name, {}, { trouble: 'bad name', reason: 'this cannot be the name of an image' });
  }

  #failed(
    image: string,
    order: PullOrder,
    what: Pick<PullFailure, 'trouble' | 'reason' | 'cause'>,
  ): HotcellError {
    const [language] = this.#languagesOf(image);
    return toPullError({
      ...what,
      image,
      platform: order.platform,
      setting: order.setting ?? `languages.${language ?? '<name>'}.image`,
      recipe:
        order.recipe ?? (language === undefined ? undefined : this.#options.languages[language]?.recipe),
      docker: dockerCommandFor(this.#engine.endpoint),
      retryAfterSeconds: Math.ceil(this.#options.failureKeptMs / 1000),
    });
  }
}
