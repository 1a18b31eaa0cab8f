import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { messageOf } from '../../core/errors.ts';
import { toTarHead } from '../../lib/tar-archive.ts';
import { toPadding } from '../../lib/tar-member.ts';
import { BuildLog } from '../images/build-log.ts';
import { toBuildError } from '../images/image-problem.ts';
import type { BuildAddition } from '../images/image-shelf.ts';
import type { Buildable, Recipe } from '../images/recipe.ts';
import { BASE_LABEL, RECIPE_LABEL } from '../images/stored-image.ts';
import { EngineRefusal, type Engine } from './engine.ts';
import { EngineSilence, followEngineWork } from './engine-work.ts';

export interface ImageBuild {
  readonly name: Buildable;
  readonly recipe: Recipe;
  readonly base: string;
  readonly platform: string | undefined;
  readonly tag: string;
  readonly silenceMs: number;
  readonly addition?: BuildAddition | undefined;
  onLine(line: string): void;
}

/** Builds one image. The base must be there: the engine is not asked to look for a newer one. */
export async function buildImage(engine: Engine, build: ImageBuild): Promise<void> {
  const { name, recipe, base, platform, tag, silenceMs, addition } = build;
  const log = new BuildLog((line) => build.onLine(line));
  try {
    await followEngineWork(engine, {
      what: `build ${tag}`,
      silenceMs,
      start: (docker, abortSignal) =>
        docker.buildImage(Readable.from(toContext(recipe, addition)), {
          t: tag,
          buildargs: { ...addition?.buildArgs, BASE: base },
          labels: { [RECIPE_LABEL]: recipe.hash, [BASE_LABEL]: base },
          ...(platform === undefined ? {} : { platform }),
          rm: true,
          forcerm: true,
          // The builder that needs nothing of its caller but this one request; every engine still has it.
          version: '1',
          abortSignal,
        }),
      onMessage: ({ stream }) => {
        if (stream !== undefined) log.write(stream);
      },
    });
  } catch (error) {
    const isSilent = error instanceof EngineSilence;
    if (!isSilent && !(error instanceof EngineRefusal)) throw error;
    throw toBuildError({
      image: tag,
      recipe: name,
      base,
      platform,
      reason: isSilent ? messageOf(error) : error.words,
      lines: log.lastLines,
      silent: isSilent,
      cause: error,
    });
  }
}

async function* toContext(recipe: Recipe, addition: BuildAddition | undefined): AsyncGenerator<Uint8Array> {
  if (addition !== undefined) {
    const { size } = await stat(addition.path);
    yield toTarHead({ path: addition.name, mode: 0o644, size });
    yield* createReadStream(addition.path) as AsyncIterable<Uint8Array>;
    yield toPadding(size);
  }
  yield recipe.context;
}
