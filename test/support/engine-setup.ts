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
    /** Of a file that has the same tests over several drivers: which of them are meant here. */
    ways: 'own' | 'engine' | 'all' | undefined;
  }
}

interface SharedEngine {
  readonly stack: AsyncDisposableStack;
  readonly found: Promise<{ socket?: string; missing?: string }>;
  users: number;
}

/** Each project has a copy of this module, and all of them one process. */
const home = globalThis as typeof globalThis & { hotcellTestEngine?: SharedEngine };

/**
 * Runs before the tests of each project that needs an engine, and finds or starts the one Docker engine of them all; what
 * was started stops with the last of them.
 */
export default async function setUpEngine(project: TestProject): Promise<() => Promise<void>> {
  const shared = (home.hotcellTestEngine ??= openEngine());
  shared.users++;
  const { socket, missing } = await shared.found;
  project.provide('dockerSocket', socket);
  project.provide('whyNoDocker', missing);
  return async () => {
    if (--shared.users > 0) return;
    delete home.hotcellTestEngine;
    await shared.stack.disposeAsync();
  };
}

function openEngine(): SharedEngine {
  const stack = new AsyncDisposableStack();
  const found = findOrStart(stack).then(async (answer) => {
    // Here, so that files that run side by side do not make it twice.
    if (answer.socket !== undefined) await ensureBaseImage(answer.socket);
    return answer;
  });
  return { stack, found, users: 0 };
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
