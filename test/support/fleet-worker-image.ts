import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { WORKER_TAG } from '../../src/app/fleet/fleet-image.ts';
import { BASE_IMAGE } from './base-image.ts';
import { engineApi } from './docker-engine.ts';

/** So many test files may use the image at a time; whoever changes it needs all of these places. */
const PLACES = 4;
const LOCKED_MS = 600_000;

/**
 * The image of the workers as long as the stack lives: the one that the engine has, or else the base of the tests under its
 * name, which has all that a scripted agent needs.
 */
export async function useWorkerImage(stack: AsyncDisposableStack): Promise<void> {
  await using attempt = new AsyncDisposableStack();
  await untilTaken(() => takePlace(attempt));
  if ((await idOf(WORKER_TAG)) === undefined) {
    const [repo = '', tag = ''] = WORKER_TAG.split(':');
    await engineApi().call('POST', `/images/${BASE_IMAGE}/tag?repo=${repo}&tag=${tag}`);
  }
  const held = attempt.move();
  stack.defer(async () => {
    await held.disposeAsync();
    await removeStandIn();
  });
}

/** For tests that build or remove the image: nobody else uses it meanwhile. */
export async function holdWorkerImage(stack: AsyncDisposableStack): Promise<void> {
  await untilTaken(() => takeAll(stack));
}

/** The last one out; whoever still uses it does it later. */
async function removeStandIn(): Promise<void> {
  await using all = new AsyncDisposableStack();
  if (!(await takeAll(all))) return;
  const id = await idOf(WORKER_TAG);
  if (id !== undefined && id === (await idOf(BASE_IMAGE)))
    await engineApi().call('DELETE', `/images/${WORKER_TAG}?noprune=1`);
}

async function idOf(image: string): Promise<string | undefined> {
  return engineApi()
    .call<{ Id: string }>('GET', `/images/${image}/json`)
    .then(
      ({ Id }) => Id,
      () => undefined,
    );
}

async function untilTaken(attempt: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + LOCKED_MS;
  while (!(await attempt())) {
    if (Date.now() > deadline) throw new Error(`${WORKER_TAG} is used by others for too long`);
    await sleep(100);
  }
}

async function takeAll(stack: AsyncDisposableStack): Promise<boolean> {
  await using attempt = new AsyncDisposableStack();
  for (let place = 0; place < PLACES; place++) if (!(await take(attempt, place))) return false;
  stack.use(attempt.move());
  return true;
}

async function takePlace(stack: AsyncDisposableStack): Promise<boolean> {
  for (let place = 0; place < PLACES; place++) if (await take(stack, place)) return true;
  return false;
}

/** A name of the kernel's, of one process at a time, and free when that ends, however it ends. */
async function take(stack: AsyncDisposableStack, place: number): Promise<boolean> {
  const server = createServer();
  server.listen(`\0hotcell-test:${engineApi().socket}:worker-image-${place}`);
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.unref();
  stack.defer(async () => {
    server.close();
    await once(server, 'close');
  });
  return true;
}
