import bundleCommand from '../support/bundle-command.ts';
import { copyImages } from '../support/copy-images.ts';
import { BASE_IMAGE, ensureBaseImage } from '../support/base-image.ts';
import { requireImages, useEngine } from '../support/docker-engine.ts';
import { FaultyEngine } from '../support/faulty-engine.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { startPrivateEngine } from '../support/private-engine.ts';
import type { Way } from '../support/served-by.ts';
import type { SoakDriver } from './plan.ts';
import { World } from './world.ts';

const OCI: Way = {
  name: 'oci/fresh',
  driver: 'oci',
  strategy: 'fresh',
  args: ['--driver', 'oci', '--strategy', 'fresh'],
  missing: undefined,
  runtime: /^/,
  imageName: () => /^/,
  singleUse: true,
  ownShm: false,
  slowBoot: false,
  prepare: () => Promise.resolve(),
};

/** The driver's own strategy. */
function toDockerWay(host: string): Way {
  return {
    ...OCI,
    name: 'docker/shared',
    driver: 'docker',
    strategy: 'shared',
    args: ['--driver', 'docker', '--strategy', 'shared', '--set', `docker.host=${host}`],
    singleUse: false,
    ownShm: true,
    slowBoot: true,
  };
}

/** A place for a soak; on docker with an engine that nobody else uses. What was started ends with the stack. */
export async function openWorld(
  stack: AsyncDisposableStack,
  driver: SoakDriver,
  seed: number,
): Promise<World> {
  await bundleCommand();
  // Both kinds of workbenches have their turn. Those of one kind are cleared away by the same kind.
  const mode = seed % 2 === 0 ? 'preload' : 'container';
  if (driver === 'oci') return new World(OCI, undefined, mode);
  const engine = await openEngine(stack);
  return new World(toDockerWay(engine.host), engine, mode);
}

/** Images are made in the engine that is kept for that, and copied into the one that has to suffer. */
async function openEngine(stack: AsyncDisposableStack): Promise<FaultyEngine> {
  await using making = new AsyncDisposableStack();
  const kept = await startPrivateEngine(making, { data: 'kept' });
  useEngine(kept);
  await ensureBaseImage(kept.socket);
  await requireImages();
  const engine = await FaultyEngine.start(stack);
  await copyImages(kept.socket, engine.api.socket, [BASE_IMAGE]);
  useEngine(engine.api);
  await useWorkerImage(stack);
  return engine;
}
