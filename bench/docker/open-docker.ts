import type { Options } from '../options.ts';
import { note } from '../support/progress.ts';
import { EngineApi } from './engine-api.ts';
import { startHostContainer } from './host-container.ts';
import { startPrivateDockerd } from './private-dockerd.ts';

export interface OpenDocker {
  readonly engine: EngineApi;
  readonly container: string;
  readonly version: string;
}

/** A container to run things in, or undefined where no engine answers. */
export async function openDocker(
  stack: AsyncDisposableStack,
  options: Options,
  scratch: string,
): Promise<OpenDocker | undefined> {
  const engine = options.startDocker ? await startPrivateDockerd(stack) : EngineApi.fromEnvironment();
  const version = await engine?.version();
  if (engine === undefined || version === undefined) {
    note('no Docker engine answers: docker exec is left out (--start-docker starts one)');
    return undefined;
  }
  stack.defer(() => engine.close());
  const container = options.dockerContainer ?? (await startHostContainer(stack, engine, scratch));
  return { engine, container, version };
}
