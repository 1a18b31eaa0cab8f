import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { LeftLastingCell } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { listCells, removeContainer, removeVolume } from './containers.ts';
import { isRefusal, type Engine } from './engine.ts';
import { NOT_FOR_CELLS } from './guest-volume.ts';
import type { Labels } from '../engine/owner-labels.ts';

/** The store of cells that outlive every server. They name no process, so nobody takes them for a dead one's. */
const STORE = 'hotcell.keeper';
const STORE_ID = /^[0-9a-f]{12}$/;

export function toStoreLabels(store: string): Labels {
  return { [STORE]: store };
}

/** What another server needs to go on with a cell. */
const Record = z.object({
  id: z.string().regex(/^[0-9a-f]{64}$/),
  name: z.string(),
  marker: z.base64(),
});
export type LastingRecord = z.infer<typeof Record>;

export function parseRecord(text: string): LastingRecord {
  return Record.parse(JSON.parse(text));
}

/** Cells go on with the guest files that they were made with, so other files are another volume. */
export async function lastingVolumeName(store: string, guest: string): Promise<string> {
  const hash = createHash('sha256');
  const names = await readdir(guest, { recursive: true, withFileTypes: true });
  const paths = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const path of paths.toSorted()) {
    if (!NOT_FOR_CELLS.test(path.slice(guest.length + 1))) hash.update(path).update(await readFile(path));
  }
  return `hotcell-${store}-${hash.digest('hex').slice(0, 8)}`;
}

/** Makes sure that a container runs, whatever it did before: a frozen agent would not answer. */
export async function requireRunning(engine: Engine, id: string, name: string): Promise<void> {
  try {
    const { State } = await engine.call('describe a container', (docker) =>
      docker.getContainer(id).inspect(),
    );
    if (State.Paused) await thawContainer(engine, id);
    if (State.Running || State.Paused) return;
  } catch (error) {
    if (!isRefusal(error, 404)) throw error;
  }
  throw new HotcellError('CELL_LOST', `cell ${name} is gone: its container has ended`);
}

async function thawContainer(engine: Engine, id: string): Promise<void> {
  await engine.call('resume a container', (docker) => docker.getContainer(id).unpause());
}

/** Removes what no cell of this store uses: the engine refuses to remove what a container does. */
export async function removeUnusedVolumes(engine: Engine, store: string): Promise<void> {
  const { Volumes } = await engine.call('list volumes', (docker) =>
    docker.listVolumes({ filters: toFilters(store) }),
  );
  for (const { Name } of Volumes ?? []) await removeVolume(engine, Name).catch(() => {});
}

function toFilters(store: string): { label: string[] } {
  return { label: [`${STORE}=${store}`] };
}

/** SECURITY: the label of a stranger may have any value; ours are ids of stores. */
export async function listLasting(engine: Engine): Promise<LeftLastingCell[]> {
  const cells = await listCells(engine, { label: [STORE] });
  return cells.flatMap(({ id, since, labels }) => {
    const store = labels[STORE] ?? '';
    return STORE_ID.test(store) ? [{ id, since, store }] : [];
  });
}

/** Removes the containers of this store but for those with these (short) ids, and the volumes that are left unused. */
export async function removeLasting(
  engine: Engine,
  store: string,
  keep: ReadonlySet<string>,
): Promise<string[]> {
  const unwanted = (await listCells(engine, toFilters(store))).filter(({ id }) => !keep.has(id));
  for (const { container, isPaused } of unwanted) {
    // Whoever is frozen does not die, as far as some engines are concerned.
    if (isPaused) await thawContainer(engine, container).catch(() => {});
    await removeContainer(engine, container);
  }
  await removeUnusedVolumes(engine, store);
  return unwanted.map(({ id }) => id);
}
