import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { clearRemains, mountsIn } from './engine-remains.ts';

/** On a disk, because images are large, and where things go that can be made again. */
const PARENT = '/var/cache/hotcell-test';
const TEMPORARY = /^(?:engine|podman)-[0-9a-f]{8}$/;

/**
 * A folder for everything that one engine has. The kept one saves making images; it belongs to one run at a time, and
 * whoever comes second gets a temporary one. What killed runs left behind is removed first.
 */
export async function claimEngineFolder(
  stack: AsyncDisposableStack,
  data: 'kept' | 'temporary',
  name: 'engine' | 'podman' = 'engine',
): Promise<string> {
  mkdirSync(PARENT, { recursive: true, mode: 0o711 });
  await removeAbandoned();
  const kept = join(PARENT, name);
  if (data === 'kept' && (await lock(stack, kept))) {
    mkdirSync(kept, { recursive: true, mode: 0o711 });
    return kept;
  }
  const folder = join(PARENT, `${name}-${randomBytes(4).toString('hex')}`);
  // Locked before it is there, so that nobody takes it for abandoned.
  if (!(await lock(stack, folder))) throw new Error(`${folder} is in use`);
  mkdirSync(folder, { mode: 0o711 });
  stack.defer(() => removeUnmounted(folder));
  return folder;
}

async function removeAbandoned(): Promise<void> {
  for (const name of readdirSync(PARENT).filter((candidate) => TEMPORARY.test(candidate))) {
    const folder = join(PARENT, name);
    await using stack = new AsyncDisposableStack();
    if (!(await lock(stack, folder))) continue;
    await clearRemains(folder);
    removeUnmounted(folder);
  }
}

/**
 * Holds a name that only one process can hold: a socket in the kernel's own name space, where nothing can be left over.
 * The kernel frees it when the process ends, however it ends.
 */
async function lock(stack: AsyncDisposableStack, folder: string): Promise<boolean> {
  const server = createServer();
  server.listen(`\0hotcell-test:${folder}`);
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.unref();
  stack.defer(() => {
    server.close();
  });
  return true;
}

/** Removing through a mount that was left would empty what is mounted there. */
export function removeUnmounted(folder: string): void {
  const [mounted] = mountsIn(folder);
  if (mounted !== undefined) throw new Error(`${mounted} is still mounted: unmount it and remove ${folder}`);
  rmSync(folder, { recursive: true, force: true });
}
