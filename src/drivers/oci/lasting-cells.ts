import { existsSync } from 'node:fs';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { removeBundle } from './bundle.ts';
import { removeCgroups } from './cgroup.ts';
import type { FifoKit } from './fifo-kit.ts';
import { cgroupPathOf, runtimeDirectoryOf, type OciSite } from './site.ts';
import { toContainerIds } from './runtime.ts';

const CELL_ID = /^[0-9a-f]{12}$/;

/** What another server needs to go on with a cell. */
const Record = z.object({
  id: z.string().regex(CELL_ID),
  kit: z.string().regex(/^[0-9a-f-]+$/),
  marker: z.base64(),
});
type LastingRecord = z.infer<typeof Record>;

export function parseRecord(text: string): LastingRecord {
  return Record.parse(JSON.parse(text));
}

export function toRecord(id: string, kit: FifoKit, marker: Uint8Array): string {
  const record: LastingRecord = {
    id,
    kit: basename(kit.directory),
    marker: Buffer.from(marker).toString('base64'),
  };
  return JSON.stringify(record);
}

export const cellFolderOf = (site: OciSite, id: string): string => join(site.instance.directory, 'cells', id);

/** Notes in the folder of a cell which kit is its own, so that it can be told from those that nobody uses. */
export async function noteKit(folder: string, kit: FifoKit): Promise<void> {
  await writeFile(join(folder, 'kit'), basename(kit.directory));
}

export function requireFolder(folder: string, name: string): void {
  if (!existsSync(folder))
    throw new HotcellError('CELL_LOST', `cell ${name} is gone: the machine was started again`);
}

/**
 * Removes every cell of the site but these, and whatever no cell uses any more. What cannot be removed is told and left to the
 * next start.
 */
export async function removeLasting(site: OciSite, keep: ReadonlySet<string>, log: Log): Promise<string[]> {
  const { directory } = site.instance;
  const folders = await readdir(join(directory, 'cells')).catch(() => []);
  const records = toContainerIds(await readdir(runtimeDirectoryOf(site.instance)).catch(() => []));
  const groups = await listCgroups(site);
  const removed: string[] = [];
  for (const id of new Set([...folders, ...records, ...groups])) {
    if (keep.has(id)) continue;
    try {
      await removeCell(site, id);
      removed.push(id);
    } catch (error) {
      log.error({ cell: id, error: messageOf(error) }, 'cell removal failed');
    }
  }
  const kits = await Promise.all([...keep].map((id) => readIn(cellFolderOf(site, id), 'kit')));
  await site.kits.sweep(new Set(kits));
  await removeRoots(site, keep);
  return removed;
}

async function removeCell(site: OciSite, id: string): Promise<void> {
  if (site.cli.knows(id)) {
    // A frozen one would not die.
    await site.cli.resume(id);
    await site.cli.kill(id);
    await site.cli.delete(id);
  }
  await removeCgroups(site.hierarchies, join(cgroupPathOf(site.instance.id), id));
  await removeBundle(cellFolderOf(site, id));
}

/** A server that was killed while it made a cell may have left no more than this of it. */
async function listCgroups(site: OciSite): Promise<string[]> {
  const folders = site.hierarchies.map((mount) => join(mount, cgroupPathOf(site.instance.id)));
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])));
  return names.flat().filter((name) => CELL_ID.test(name));
}

/** Every server makes a root of its own; the cells keep the one that they were made with. */
async function removeRoots(site: OciSite, keep: ReadonlySet<string>): Promise<void> {
  const used = new Set([basename(dirname(site.rootfs.path))]);
  for (const id of keep) {
    const config = await readIn(cellFolderOf(site, id), 'config.json');
    const path = /"root":\{"path":"([^"]+)"/.exec(config)?.[1];
    if (path !== undefined) used.add(basename(dirname(path)));
  }
  const names = await readdir(site.instance.directory);
  for (const name of names) {
    if (name.startsWith('rootfs') && !used.has(name))
      await rm(join(site.instance.directory, name), { recursive: true, force: true });
  }
}

function readIn(folder: string, name: string): Promise<string> {
  return readFile(join(folder, name), 'utf8').catch(() => '');
}
