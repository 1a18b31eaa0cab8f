import type { TestProject } from 'vitest/node';
import { messageOf } from '../../src/core/errors.ts';
import { ensureBaseImage, whyNoBaseImage } from './base-image.ts';
import { EngineApi } from './engine-api.ts';
import { startPrivateEngine, whyNoPrivateEngine } from './private-engine.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Socket of the Docker engine that tests may use. */
    dockerSocket: string | undefined;
    /** Why there is none: for `testThatNeeds`. */
    whyNoDocker: string | undefined;
  }
}

/** Runs once before the tests with real cells: finds a Docker engine for them, or starts one and stops it afterwards. */
export default async function setUpEngine(project: TestProject): Promise<() => Promise<void>> {
  const stack = new AsyncDisposableStack();
  const { socket, missing } = await findOrStart(stack);
  // Here, so that files that run side by side do not make it twice.
  if (socket !== undefined) await ensureBaseImage(socket);
  project.provide('dockerSocket', socket);
  project.provide('whyNoDocker', missing);
  return () => stack.disposeAsync();
}

async function findOrStart(stack: AsyncDisposableStack): Promise<{ socket?: string; missing?: string }> {
  const noImage = whyNoBaseImage();
  if (noImage !== undefined) return { missing: `no image for the Docker engine: ${noImage}` };
  const usual = EngineApi.fromEnvironment();
  if (usual !== undefined) {
    const version = await usual.version();
    usual.close();
    if (version !== undefined) return { socket: usual.socket };
  }
  const missing = whyNoPrivateEngine();
  if (missing !== undefined) return { missing: `no Docker engine answers, and ${missing}` };
  // What was started before it failed is stopped at once, and not at the end of all tests.
  await using attempt = new AsyncDisposableStack();
  try {
    const { socket } = await startPrivateEngine(attempt, { data: 'kept' });
    stack.use(attempt.move());
    return { socket };
  } catch (error) {
    return { missing: `no Docker engine can be started: ${messageOf(error)}` };
  }
}
