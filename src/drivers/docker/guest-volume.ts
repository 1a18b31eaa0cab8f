import { readFile, readdir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { toTar } from '../../lib/tar-archive.ts';
import { GUEST_IN_CELL } from '../linux/cell-paths.ts';
import type { Engine } from './engine.ts';
import type { Labels } from '../engine/owner-labels.ts';

/** Tests of the guest files, and the text about them, are not for cells. */
export const NOT_FOR_CELLS = /^(agent|credentials|egress|exactness|files)(\/|$)|\.md$/;

/**
 * A volume with the guest files, which every cell mounts read-only. Not a bind mount: the engine may be on another
 * machine, or in one that does not see our folders.
 */
export async function makeGuestVolume(
  engine: Engine,
  options: { readonly name: string; readonly labels: Labels; readonly image: string; readonly guest: string },
): Promise<void> {
  const { name, labels } = options;
  await engine.call('create a volume', (docker) =>
    docker.createVolume({ Name: name, Labels: { ...labels } }),
  );
  const archive = toTar(await readGuestFiles(options.guest));
  // Files reach a volume only through a container that mounts it; this one is never started.
  const container = await engine.call('create a container', (docker) =>
    docker.createContainer({
      name,
      Image: options.image,
      Cmd: ['true'],
      Labels: { ...labels },
      HostConfig: { NetworkMode: 'none', Binds: [`${name}:${GUEST_IN_CELL}`] },
    }),
  );
  try {
    await engine.call('take the guest files', () =>
      container.putArchive(Buffer.from(archive), { path: GUEST_IN_CELL }),
    );
  } finally {
    await engine.call('remove a container', () => container.remove({ force: true }));
  }
}

async function readGuestFiles(guest: string): Promise<{ path: string; content: Uint8Array; mode: number }[]> {
  const entries = await readdir(guest, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(guest, join(entry.parentPath, entry.name)))
    .filter((path) => !NOT_FOR_CELLS.test(path));
  return Promise.all(
    paths.map(async (path) => ({ path, content: await readFile(join(guest, path)), mode: 0o644 })),
  );
}
