import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import { parseImageName } from '../images/image-name.ts';
import {
  ImageShelf,
  type BuildRequest,
  type ImageShelfOptions,
  type PullOrder,
} from '../images/image-shelf.ts';
import { readRecipe } from '../images/recipe.ts';
import type { OnProgress } from '../images/shared-pulls.ts';
import { BASE_LABEL, RECIPE_LABEL, type StoredImage } from '../images/stored-image.ts';
import { toBuild, toImageInspect, toImagePull } from './argv.ts';
import type { ContainerCli } from './cli.ts';
import { CliRefusal, isNotFound } from './cli-words.ts';
import { parseImages, type InspectedImage } from './shapes.ts';

const PULL_SILENCE_MS = 120_000;
/** Longer: the builder may have to be fetched and started before it says anything. */
const BUILD_SILENCE_MS = 600_000;

/** The images that `container` has. Asked before every cell: `run` would pull a missing one by itself, in silence. */
export class AppleImages extends ImageShelf {
  readonly command = 'container image';
  readonly #cli: ContainerCli;

  constructor(cli: ContainerCli, options: ImageShelfOptions) {
    super(options);
    this.#cli = cli;
  }

  async find(image: string): Promise<StoredImage | undefined> {
    // SECURITY: what cannot be a name might be taken for an option.
    if (parseImageName(image) === undefined)
      throw this.#unavailable(image, 'this cannot be the name of an image');
    try {
      const [found] = parseImages(await this.#cli.call(`look for image ${image}`, toImageInspect(image)));
      return found === undefined ? undefined : toStored(found);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  protected buildsUnasked(): boolean {
    return true;
  }

  protected async fetch(image: string, onProgress: OnProgress, { platform }: PullOrder): Promise<void> {
    if (platform !== undefined)
      throw this.#unavailable(image, `this command has no way to pull it for ${platform}`);
    onProgress(`pulling ${image}`);
    const following = {
      silenceMs: PULL_SILENCE_MS,
      onLine: (line: string) => onProgress(`pulling ${image}: ${line}`),
    };
    try {
      await this.#cli.follow(`pull ${image}`, toImagePull(image), following);
    } catch (error) {
      throw error instanceof CliRefusal ? this.#unavailable(image, error.words, error) : error;
    }
  }

  protected async make(
    { name, base, platform, tag, addition }: BuildRequest & { readonly tag: string },
    onProgress: OnProgress,
  ): Promise<{ readonly base: string }> {
    if (addition !== undefined)
      throw new HotcellError('IMAGE_UNAVAILABLE', `image ${tag} cannot be built by the apple driver`);
    // Below a link the builder finds an empty folder.
    const context = await realpath(this.recipes);
    const recipe = await readRecipe(context, name);
    const from = base ?? recipe.base;
    const words = toBuild({
      tag,
      context,
      file: join(context, name, 'Dockerfile'),
      base: from,
      labels: { [RECIPE_LABEL]: recipe.hash, [BASE_LABEL]: from },
      platform,
    });
    const following = {
      silenceMs: BUILD_SILENCE_MS,
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
    return { base: from };
  }

  #unavailable(image: string, words: string, cause?: unknown): HotcellError {
    return new HotcellError('IMAGE_UNAVAILABLE', `image ${image} cannot be had: ${words}`, {
      hint: `Correct languages.<name>.image, or try it by hand: container image pull ${image}`,
      retryAfterSeconds: this.retryAfterSeconds,
      cause,
    });
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
