import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { HELPER_ENV } from '../../src/drivers/process/run-command.ts';
import { BASE_IMAGE, baseImageRecipe } from './base-image.ts';
import { copyImages } from './copy-images.ts';
import { engineApi } from './docker-engine.ts';
import { EngineApi } from './engine-api.ts';
import { claimEngineFolder } from './engine-folder.ts';
import { unmountAll } from './engine-remains.ts';
import { findProgram } from './find-program.ts';
import { waitFor } from './leftovers.ts';
import { removeContainers } from './private-engine.ts';

/** Beside the cgroups of v1, where crun refuses to work. */
const HYBRID = '/sys/fs/cgroup/unified';

export function whyNoPodman(): string | undefined {
  if (process.geteuid?.() !== 0) return 'a private Podman needs root';
  return findProgram('podman') === undefined ? 'podman is not installed (apt-get install podman)' : undefined;
}

/**
 * Podman's own engine with everything it has in one folder, behind a socket that speaks like Docker's. It has the base image
 * of the tests, and keeps it for the next time.
 */
export async function startPodman(stack: AsyncDisposableStack): Promise<EngineApi> {
  const folder = await claimEngineFolder(stack, 'kept', 'podman');
  stack.defer(() => unmountAll(folder));
  const socket = join(folder, 'podman.sock');
  // prettier-ignore
  const command = [
    'podman', '--root', join(folder, 'data'), '--runroot', join(folder, 'run'), '--cgroup-manager', 'cgroupfs',
    'system', 'service', '--time=0', `unix://${socket}`,
  ];
  const hide = existsSync(HYBRID) ? `umount ${HYBRID}; ` : '';
  const child = spawn('unshare', ['-m', 'sh', '-c', `${hide}exec "$@"`, 'sh', ...command], {
    env: { ...HELPER_ENV, HOME: folder },
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  stack.defer(async () => {
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  });
  const api = new EngineApi(socket);
  stack.defer(() => api.close());
  await waitFor('podman answers', async () => (await api.version()) !== undefined);
  // Of a run that was killed.
  await removeContainers(api);
  const image = await baseImageRecipe(engineApi());
  if ((await baseImageRecipe(api)) !== image) await copyImages(engineApi().socket, socket, [BASE_IMAGE]);
  return api;
}
