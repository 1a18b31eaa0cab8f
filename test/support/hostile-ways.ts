import { engineApi, engineHost } from './docker-engine.ts';
import { useWorkerImage } from './fleet-worker-image.ts';
import { DOCKER_FRESH, OCI_FRESH, type Way } from './served-by.ts';

/** What makes cells for workers. */
export const FLEET_WAYS: readonly Way[] = [OCI_FRESH, DOCKER_FRESH];

/** Settings of hotcell for a fleet on this way. */
export function settingsOf({ driver }: Way): Record<string, unknown> {
  return driver === 'docker' ? { docker: { host: engineHost() ?? '' } } : {};
}

/** Makes what workers need that the machine does not have. */
export async function prepareWorkers(way: Way, stack: AsyncDisposableStack): Promise<void> {
  if (way.driver === 'docker') await useWorkerImage(stack);
}

interface Listed {
  readonly Id: string;
}

/** All that the engine says of containers which have something of this folder. */
export async function inspectContainers({ driver }: Way, folder: string): Promise<string[]> {
  if (driver !== 'docker') return [];
  const list = await engineApi().call<Listed[]>('GET', '/containers/json?all=1');
  const all = await Promise.all(
    list.map(({ Id }) =>
      engineApi()
        .call<object>('GET', `/containers/${Id}/json`)
        .then((found) => JSON.stringify(found))
        .catch(() => ''),
    ),
  );
  return all.filter((text) => text.includes(folder));
}
