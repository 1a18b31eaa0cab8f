import * as z from 'zod';
import { group } from '../../core/setting-values.ts';
import { driverKind, type DriverSurroundings } from '../kind.ts';
import type { Endpoint } from './endpoint.ts';

export const DOCKER = driverKind({
  traits: {
    confines: 'cells',
    images: true,
    // A cell takes a third of a second of CPU.
    sharesByDefault: true,
    terminals: true,
    workers: true,
    hostFolders: true,
  },
  auto: 'anywhere',
  settings: {
    docker: group('the docker driver', {
      host: z
        .string()
        .optional()
        .describe(
          'engine to use, such as unix:///run/docker.sock; otherwise DOCKER_HOST, the Docker context, the usual sockets',
        ),
      runtime: z
        .string()
        .optional()
        .describe('runtime class of the cells, such as runsc; the engine must know it'),
    }),
  },
  variables: {
    read: ['HOME', 'XDG_RUNTIME_DIR'],
    // The client library would read some of them itself, and fail on what is none of its business.
    taken: [
      'DOCKER_HOST',
      'DOCKER_CONTEXT',
      'DOCKER_TLS_VERIFY',
      'DOCKER_TLS',
      'DOCKER_CERT_PATH',
      'DOCKER_CONFIG',
    ],
  },
  make: async (around, { docker: { host, runtime } }) => {
    const { DockerDriver } = await import('./driver.ts');
    return new DockerDriver({ ...around, runtime, endpoint: await endpointOf(around, host) });
  },
  openImages: async (around, { docker }) => {
    const endpoint = await endpointOf(around, docker.host);
    const [{ Engine }, { ImageStore }] = await Promise.all([import('./engine.ts'), import('./images.ts')]);
    return new ImageStore(await Engine.connect(endpoint), around);
  },
});

/** The engine of the setting docker.host, or the one that the docker command would talk to. */
async function endpointOf({ variables }: DriverSurroundings, host: string | undefined): Promise<Endpoint> {
  const { findEndpoint } = await import('./endpoint.ts');
  return findEndpoint({ host, ...variables, uid: process.getuid?.() });
}
