import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellImage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { BASE_LABEL, RECIPE_LABEL } from '../docker/build-image.ts';
import { parseImageName } from '../docker/image-name.ts';
import { readRecipe, recipeOfTag, toBuiltTag, type Buildable } from '../docker/recipe.ts';
import { SharedPulls, type OnProgress } from '../docker/shared-pulls.ts';
import { toBuild, toImageInspect, toImagePull } from './argv.ts';
import type { ContainerCli } from './cli.ts';
import { CliRefusal, isNotFound } from './cli-words.ts';
import { parseImages, type InspectedImage } from './shapes.ts';

const PULL_SILENCE_MS = 120_000;
/** Longer: the builder may have to be fetched and started before it says anything. */
const BUILD_SILENCE_MS = 600_000;
const FAILURE_KEPT_MS = 15_000;

export interface AppleImageOptions {
  /** The folder images/. */
  readonly recipes: string;
  readonly pullSilenceMs?: number;
  readonly buildSilenceMs?: number;
  readonly failureKeptMs?: number;
}

export interface BuildOrder {
  readonly name: Buildable;
  readonly base?: string | undefined;
  readonly platform?: string | undefined;
}

/** The images that `container` has. */
export class AppleImages {
  readonly #cli: ContainerCli;
  readonly #options: Required<AppleImageOptions>;
  readonly #flights: SharedPulls;

  constructor(cli: ContainerCli, options: AppleImageOptions) {
    this.#cli = cli;
    this.#options = {
      pullSilenceMs: PULL_SILENCE_MS,
      buildSilenceMs: BUILD_SILENCE_MS,
      failureKeptMs: FAILURE_KEPT_MS,
      ...options,
    };
    this.#flights = new SharedPulls({
      failureKeptMs: this.#options.failureKeptMs,
      now: () => performance.now(),
      isLasting: (error) => error instanceof HotcellError && error.code === 'IMAGE_UNAVAILABLE',
    });
  }

  async find(image: string): Promise<InspectedImage | undefined> {
    // SECURITY: what cannot be a name might be taken for an option.
    if (parseImageName(image) === undefined)
      throw toUnavailable(image, 'this cannot be the name of an image');
    try {
      const [found] = parseImages(await this.#cli.call(`look for image ${image}`, toImageInspect(image)));
      return found;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** The name of the one to use, if it is there: ours where it was built, otherwise the one of the registry. */
  async stored({ name, recipe }: CellImage): Promise<string | undefined> {
    const names = [recipe === undefined ? undefined : toBuiltTag(recipe), name];
    for (const image of names.filter((entry) => entry !== undefined))
      if ((await this.find(image)) !== undefined) return image;
    return undefined;
  }

  /**
   * Builds or pulls what is missing, and says what it is called. Callers who want the same image share one flight, and for
   * a while its failure. Asked for before every cell: `run` would pull a missing image by itself, in silence.
   */
  async ensure(image: CellImage, onProgress: OnProgress): Promise<string> {
    const stored = await this.stored(image);
    if (stored !== undefined) return stored;
    const name = image.name ?? (image.recipe === undefined ? undefined : toBuiltTag(image.recipe));
    if (name === undefined) {
      throw new HotcellError('IMAGE_UNAVAILABLE', 'the language has no image', {
        hint: 'Set languages.<name>.image to an image that has the interpreter.',
      });
    }
    await this.#flights.join(name, onProgress, async (tellAll) => {
      const recipe = recipeOfTag(name);
      // SECURITY: nobody else can give us what we build ourselves.
      if (recipe === undefined) await this.#pull(name, tellAll);
      else await this.build({ name: recipe }, tellAll);
    });
    return name;
  }

  async #pull(image: string, onProgress: OnProgress): Promise<void> {
    onProgress(`pulling ${image}`);
    const following = {
      silenceMs: this.#options.pullSilenceMs,
      onLine: (line: string) => onProgress(`pulling ${image}: ${line}`),
    };
    try {
      await this.#cli.follow(`pull ${image}`, toImagePull(image), following);
    } catch (error) {
      throw error instanceof CliRefusal ? toUnavailable(image, error.words, error) : error;
    }
  }

  async build({ name, base, platform }: BuildOrder, onProgress: OnProgress): Promise<InspectedImage> {
    // Below a link the builder finds an empty folder.
    const context = await realpath(this.#options.recipes);
    const recipe = await readRecipe(context, name);
    const tag = toBuiltTag(name);
    const from = base ?? recipe.base;
    const words = toBuild({
      tag,
      context,
      file: join(context, name, 'Dockerfile'),
      base: from,
      labels: { [RECIPE_LABEL]: recipe.hash, [BASE_LABEL]: from },
      platform,
    });
    onProgress(`building ${tag}`);
    const following = {
      silenceMs: this.#options.buildSilenceMs,
      onLine: (line: string) => onProgress(`building ${tag}: ${line}`),
    };
    try {
      await this.#cli.follow(`build ${tag}`, words, following);
    } catch (error) {
      if (!(error instanceof CliRefusal)) throw error;
      throw new HotcellError(
        'IMAGE_UNAVAILABLE',
        `image ${tag} cannot be built from ${from}: ${error.words}`,
        {
          hint: `Take a base that has everything: hotcell build ${name} --base IMAGE; images/README.md says what that is`,
          cause: error,
        },
      );
    }
    this.#flights.forgetFailures();
    const found = await this.find(tag);
    if (found === undefined) throw toUnavailable(tag, 'it was built and is not there');
    return found;
  }
}

function toUnavailable(image: string, words: string, cause?: unknown): HotcellError {
  return new HotcellError('IMAGE_UNAVAILABLE', `image ${image} cannot be had: ${words}`, {
    hint: `Correct languages.<name>.image, or try it by hand: container image pull ${image}`,
    retryAfterSeconds: FAILURE_KEPT_MS / 1000,
    cause,
  });
}
