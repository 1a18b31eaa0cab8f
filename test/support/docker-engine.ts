import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import { BUILDABLE, toBuiltTag } from '../../src/drivers/images/recipe.ts';
import { ensureBaseImage } from './base-image.ts';
import { EngineApi } from './engine-api.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));

let chosen: EngineApi | undefined;

/** For whoever uses what is here and is no test: nobody provides an engine there. */
export function useEngine(engine: EngineApi): void {
  chosen = engine;
}

/** The Docker engine of the tests, as the setting docker.host takes it; the only place that knows where it is. */
export function engineHost(): string | undefined {
  const socket = chosen?.socket ?? inject('dockerSocket');
  return socket === undefined ? undefined : `unix://${socket}`;
}

/** Why there is no engine, or undefined when there is one: for `testThatNeeds`. */
export function whyNoEngine(): string | undefined {
  return inject('dockerSocket') === undefined ? (inject('whyNoDocker') ?? 'no Docker engine') : undefined;
}

let api: EngineApi | undefined;

/** By the engine's own interface and not by our code: what is under test is not asked about itself. */
export function engineApi(): EngineApi {
  if (chosen !== undefined) return chosen;
  const socket = inject('dockerSocket');
  if (socket === undefined) throw new Error('there is no Docker engine');
  return (api ??= new EngineApi(socket));
}

/** What an image is made of, the base first; nothing if there is no such image. */
async function layersOf(image: string): Promise<readonly string[]> {
  type Image = { RootFS: { Layers: string[] } };
  const found = await engineApi()
    .call<Image>('GET', `/images/${image}/json`)
    .catch(() => undefined);
  return found?.RootFS.Layers ?? [];
}

/** Makes the images of the built-in languages, as `hotcell build --base` does, where they are not there. */
export async function requireImages(): Promise<void> {
  const base = await ensureBaseImage(engineApi().socket);
  const [layer] = await layersOf(base);
  const missing: (typeof BUILDABLE)[number][] = [];
  for (const name of BUILDABLE) if ((await layersOf(toBuiltTag(name)))[0] !== layer) missing.push(name);
  if (missing.length === 0) return;
  const engine = await Engine.connect(findEndpoint({ host: engineHost() }));
  const store = new ImageStore(engine, { recipes: RECIPES, languages: BUILT_IN_LANGUAGES });
  for (const name of missing) await store.build({ name, base }, () => {});
}
