import { fileURLToPath } from 'node:url';
import { inject } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import { BUILDABLE, toBuiltTag } from '../../src/drivers/docker/recipe.ts';
import { ensureBaseImage } from './base-image.ts';
import { EngineApi } from './engine-api.ts';

const RECIPES = fileURLToPath(new URL('../../images', import.meta.url));

/** The Docker engine of the tests, as the setting docker.host takes it; the only place that knows where it is. */
export function engineHost(): string | undefined {
  const socket = inject('dockerSocket');
  return socket === undefined ? undefined : `unix://${socket}`;
}

/** Why there is no engine, or undefined when there is one: for `testThatNeeds`. */
export function whyNoEngine(): string | undefined {
  return inject('dockerSocket') === undefined ? (inject('whyNoDocker') ?? 'no Docker engine') : undefined;
}

let api: EngineApi | undefined;

/** By the engine's own interface and not by our code: what is under test is not asked about itself. */
export function engineApi(): EngineApi {
  const socket = inject('dockerSocket');
  if (socket === undefined) throw new Error('there is no Docker engine');
  return (api ??= new EngineApi(socket));
}

/** Makes the images of the built-in languages, as `hotcell build --base` does, where they are not there. */
export async function requireImages(): Promise<void> {
  const stored = await engineApi().call<{ RepoTags: string[] | null }[]>('GET', '/images/json');
  const tags = new Set(stored.flatMap(({ RepoTags }) => RepoTags ?? []));
  const missing = BUILDABLE.filter((name) => !tags.has(toBuiltTag(name)));
  if (missing.length === 0) return;
  const base = await ensureBaseImage(engineApi().socket);
  const engine = await Engine.connect(findEndpoint({ host: engineHost() }));
  const store = new ImageStore(engine, { recipes: RECIPES, languages: BUILT_IN_LANGUAGES });
  for (const name of missing) await store.build({ name, base }, () => {});
}
