import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { promisify } from 'node:util';
import { WORKER_TAG } from '../../src/app/fleet/fleet-image.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import { BASE_IMAGE } from '../support/base-image.ts';
import { MAIN } from '../support/command.ts';
import { engineHost } from '../support/docker-engine.ts';
import { imageId, removeImage, tagImage } from '../support/engine-images.ts';
import { holdWorkerImage } from '../support/fleet-worker-image.ts';
import { npmEnvironment } from './agent-setup.ts';

/** Ours, kept between runs like its base. */
const AGENT_IMAGE = 'hotcell-test-agent:latest';
/** What the engine has had under the name of the image of the workers. */
const KEPT = 'hotcell-test-kept-agent:latest';

/** The image of the workers with the real agent in it, as `hotcell fleet build` makes it, as long as the stack lives. */
export async function useAgentImage(stack: AsyncDisposableStack): Promise<void> {
  await using attempt = new AsyncDisposableStack();
  await holdWorkerImage(attempt);
  const engine = await Engine.connect(findEndpoint({ host: engineHost() }));
  const ours = await imageId(engine, AGENT_IMAGE);
  // A run that was killed has left ours under this name, and the other one aside.
  const found = (await imageId(engine, KEPT)) ?? (await imageId(engine, WORKER_TAG));
  const before = found === ours ? undefined : found;
  if (before !== undefined) await tagImage(engine, before, KEPT);
  attempt.defer(async () => {
    await removeImage(engine, WORKER_TAG);
    if (before === undefined) return;
    await tagImage(engine, before, WORKER_TAG);
    await removeImage(engine, KEPT);
  });
  await removeImage(engine, WORKER_TAG);
  if (ours !== undefined) await tagImage(engine, ours, WORKER_TAG);
  // Does nothing if it is as it should be.
  const args = [MAIN, 'fleet', 'build', '--base', BASE_IMAGE];
  const env = { ...npmEnvironment(homedir()), DOCKER_HOST: engineHost() };
  await promisify(execFile)(process.execPath, args, { env });
  const made = await imageId(engine, WORKER_TAG);
  if (made !== undefined && made !== ours) await tagImage(engine, made, AGENT_IMAGE);
  stack.use(attempt.move());
}
