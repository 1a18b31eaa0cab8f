import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { BUILT_IN_LANGUAGES } from '../../src/core/language.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { ImageStore } from '../../src/drivers/docker/images.ts';
import { BUILDABLE } from '../../src/drivers/images/recipe.ts';
import { ensureBaseImage } from '../../test/support/base-image.ts';
import { EngineApi } from '../../test/support/engine-api.ts';
import { startPrivateEngine } from '../../test/support/private-engine.ts';
import type { Options } from '../options.ts';
import { note, progress } from '../support/progress.ts';

export interface OpenDocker {
  readonly engine: EngineApi;
  readonly container: string;
  readonly version: string;
}

/** An engine, the images of cells in it, and a container to run things in; undefined where no engine answers. */
export async function openDocker(
  stack: AsyncDisposableStack,
  options: Options,
): Promise<OpenDocker | undefined> {
  const engine = options.startDocker
    ? await startPrivateEngine(stack, { data: 'kept' })
    : EngineApi.fromEnvironment();
  const version = await engine?.version();
  if (engine === undefined || version === undefined) {
    note('no Docker engine answers: everything with docker is left out (--start-docker starts one)');
    return undefined;
  }
  stack.defer(() => engine.close());
  const base = await ensureBaseImage(engine.socket);
  await buildImages(engine.socket, base);
  const container = options.dockerContainer ?? (await startContainer(stack, engine, base));
  return { engine, container, version };
}

/** What the cells are made from, on the same base as the container: the interpreters are the same files. */
async function buildImages(socket: string, base: string): Promise<void> {
  const engine = await Engine.connect(findEndpoint({ host: `unix://${socket}` }));
  const recipes = fileURLToPath(new URL('../../images', import.meta.url));
  const store = new ImageStore(engine, { recipes, languages: BUILT_IN_LANGUAGES });
  for (const name of BUILDABLE) await store.build({ name, base }, progress);
}

async function startContainer(
  stack: AsyncDisposableStack,
  engine: EngineApi,
  image: string,
): Promise<string> {
  const name = `hotcell-bench-${randomBytes(3).toString('hex')}`;
  stack.defer(() => engine.call('DELETE', `/containers/${name}?force=1&v=1`));
  await engine.call('POST', `/containers/create?name=${name}`, {
    Image: image,
    Cmd: ['sleep', 'infinity'],
    HostConfig: { NetworkMode: 'none', Tmpfs: { '/tmp': 'exec' } },
  });
  await engine.call('POST', `/containers/${name}/start`);
  return name;
}
