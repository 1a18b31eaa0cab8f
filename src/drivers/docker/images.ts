import type Docker from 'dockerode';
import type { HotcellError } from '../../core/errors.ts';
import { parseImageName, type ImageName } from '../images/image-name.ts';
import { toPullError, type PullFailure } from '../images/image-problem.ts';
import {
  ImageShelf,
  type BuildRequest,
  type ImageShelfOptions,
  type PullOrder,
} from '../images/image-shelf.ts';
import { RUNNER_BASE, readRecipe, type Buildable } from '../images/recipe.ts';
import type { OnProgress } from '../images/shared-pulls.ts';
import { isOfPlatform, type StoredImage } from '../images/stored-image.ts';
import { buildImage } from './build-image.ts';
import { dockerCommandFor } from './docker-command.ts';
import { isRefusal, type CallOptions, type Engine } from './engine.ts';
import { pullImage, whyNotPulled } from './pull-image.ts';

const PULL_SILENCE_MS = 90_000;
/** Longer: a package manager that works on something large says nothing meanwhile. */
const BUILD_SILENCE_MS = 600_000;
const PROGRESS_EVERY_MS = 1_000;

export interface ImageStoreOptions extends ImageShelfOptions {
  readonly pullSilenceMs?: number;
  readonly buildSilenceMs?: number;
  readonly progressEveryMs?: number;
}

/** The images of a Docker engine. */
export class ImageStore extends ImageShelf {
  readonly command: string;
  readonly #engine: Engine;
  readonly #options: Required<
    Pick<ImageStoreOptions, 'pullSilenceMs' | 'buildSilenceMs' | 'progressEveryMs' | 'now'>
  >;

  constructor(engine: Engine, options: ImageStoreOptions) {
    super(options);
    this.#engine = engine;
    this.command = dockerCommandFor(engine.endpoint);
    this.#options = {
      pullSilenceMs: PULL_SILENCE_MS,
      buildSilenceMs: BUILD_SILENCE_MS,
      progressEveryMs: PROGRESS_EVERY_MS,
      now: () => performance.now(),
      ...options,
    };
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

  /** That of run_code, whose users know nothing of images; languages have one in a registry. */
  protected buildsUnasked(recipe: Buildable): boolean {
    return recipe === RUNNER_BASE;
  }

  protected async fetch(image: string, onProgress: OnProgress, order: PullOrder): Promise<void> {
    const name = this.#parse(image);
    const { pullSilenceMs: silenceMs, progressEveryMs, now } = this.#options;
    const { platform } = order;
    try {
      await pullImage(this.#engine, { image, name, platform, silenceMs, progressEveryMs, now, onProgress });
    } catch (error) {
      const why = whyNotPulled(error);
      throw why === undefined ? error : this.#failed(image, order, { ...why, cause: error });
    }
  }

  protected async make(
    { name, platform, tag, ...request }: BuildRequest & { readonly tag: string },
    onProgress: OnProgress,
  ): Promise<{ readonly base: string }> {
    const recipe = await readRecipe(this.recipes, name);
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
    return { base };
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
    const [language] = this.languagesOf(image);
    return toPullError({
      ...what,
      image,
      platform: order.platform,
      setting: order.setting ?? `languages.${language ?? '<name>'}.image`,
      recipe: order.recipe ?? (language === undefined ? undefined : this.languages[language]?.recipe),
      docker: this.command,
      retryAfterSeconds: this.retryAfterSeconds,
    });
  }
}

function toStoredImage(info: Docker.ImageInspectInfo): StoredImage {
  return {
    id: info.Id,
    sizeBytes: info.Size,
    created: info.Created,
    platform: [info.Os, info.Architecture, platformVariant(info)].filter((part) => part !== '').join('/'),
    labels: { ...info.Config.Labels },
  };
}

/** The types of the client do not know of it yet. */
function platformVariant(info: object): string {
  return 'Variant' in info && typeof info.Variant === 'string' ? info.Variant : '';
}
