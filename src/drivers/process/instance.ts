import { randomBytes } from 'node:crypto';
import { chmod, lstat, mkdir, readFile, readdir, rename, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { LeftCell, LeftLastingCell } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { judgeOwner, ownerRecord } from './owner.ts';

const TMPFS_MAGIC = 0x01021994;
const OWNER_FILE = 'owner.json';
const UNFINISHED = '.new-';
const INSTANCE_ID = /^[0-9a-f]{12}$/;
const LASTING_ID = /^lasting-([0-9a-f]{12})$/;
/** With the owner's record after the id; those of earlier versions have none. */
const UNFINISHED_ID = /^\.new-[0-9a-f]{12}(?:-([\w-]+))?$/;

/** One living process that owns cells: a folder for its bundles, and a name for its cgroups. */
export interface Instance {
  readonly id: string;
  readonly directory: string;
}

/** Bundles are made and removed all the time: tmpfs if there is one. */
export async function defaultStateDirectory(): Promise<string> {
  const uid = process.geteuid?.() ?? 0;
  const candidates = uid === 0 ? ['/run', '/dev/shm'] : [`/run/user/${uid}`, '/dev/shm'];
  for (const parent of candidates) {
    const info = await statfs(parent).catch(() => undefined);
    if (info?.type === TMPFS_MAGIC)
      return join(parent, uid === 0 || parent !== '/dev/shm' ? 'hotcell' : `hotcell-${uid}`);
  }
  return uid === 0 ? '/run/hotcell' : `/tmp/hotcell-${uid}`;
}

/**
 * Makes the folder of this process. It gets its name only when the owner's record is in it, and has the record in its
 * name until then, so that a crash at any moment leaves a folder that can be judged. `searched`: cells come to their things
 * on this way, and not by a mount that somebody else makes.
 */
export async function openInstance(
  stateDirectory: string,
  { searched }: { readonly searched: boolean } = { searched: true },
): Promise<Instance> {
  await makeStateDirectory(stateDirectory, searched);
  const id = randomBytes(6).toString('hex');
  const record = await ownerRecord();
  const unfinished = join(stateDirectory, `${UNFINISHED}${id}-${Buffer.from(record).toString('base64url')}`);
  await mkdir(unfinished, { mode: 0o711 });
  await writeFile(join(unfinished, OWNER_FILE), record, { mode: 0o600 });
  const directory = join(stateDirectory, id);
  await rename(unfinished, directory);
  return { id, directory };
}

/** A folder for cells that outlive every server; its name says which store has their records. */
export async function openLastingInstance(stateDirectory: string, store: string): Promise<Instance> {
  await makeStateDirectory(stateDirectory);
  const instance = lastingInstance(stateDirectory, store);
  await mkdir(instance.directory, { recursive: true, mode: 0o711 });
  return instance;
}

export function lastingInstance(stateDirectory: string, store: string): Instance {
  const id = `lasting-${store}`;
  if (!LASTING_ID.test(id)) throw new HotcellError('INTERNAL', 'the id of a store is twelve hex digits');
  return { id, directory: join(stateDirectory, id) };
}

/** The cells that outlive every server, of all stores. */
export async function lastingCells(stateDirectory: string): Promise<LeftLastingCell[]> {
  const names = (await isOurFolder(stateDirectory)) ? await readdir(stateDirectory) : [];
  const found = names.flatMap((name) => LASTING_ID.exec(name)?.[1] ?? []);
  const cells = found.map(async (store) =>
    (await cellsIn(lastingInstance(stateDirectory, store))).map((cell) => ({ ...cell, store })),
  );
  return (await Promise.all(cells)).flat();
}

/** Folders whose owner is no longer alive. */
export async function deadInstances(stateDirectory: string): Promise<Instance[]> {
  if (!(await isOurFolder(stateDirectory))) return [];
  const names = await readdir(stateDirectory);
  const dead: Instance[] = [];
  for (const id of names) {
    const directory = join(stateDirectory, id);
    const unfinished = UNFINISHED_ID.exec(id);
    if (unfinished !== null) {
      const record = Buffer.from(unfinished[1] ?? '', 'base64url').toString();
      if ((await judgeOwner(record)) !== 'alive') await rm(directory, { recursive: true, force: true });
      continue;
    }
    // SECURITY: whoever points stateDir at a folder with other things in it must not lose them.
    if (INSTANCE_ID.test(id) && !(await isOwned(directory))) dead.push({ id, directory });
  }
  return dead;
}

/** The cells that have a folder in it. */
async function cellsIn({ directory }: Instance): Promise<LeftCell[]> {
  const folder = join(directory, 'cells');
  const names = await readdir(folder).catch(() => []);
  return Promise.all(
    names.map(async (id) => ({
      id,
      since: await lstat(join(folder, id)).then(
        ({ birthtimeMs }) => birthtimeMs,
        () => undefined,
      ),
    })),
  );
}

/** Of all folders whose owner is no longer alive. */
export async function deadCells(stateDirectory: string): Promise<LeftCell[]> {
  return (await Promise.all((await deadInstances(stateDirectory)).map(cellsIn))).flat();
}

/** A record that nobody can read has no owner: the folder around it is ours in any case. */
async function isOwned(directory: string): Promise<boolean> {
  const text = await readFile(join(directory, OWNER_FILE), 'utf8').catch(() => undefined);
  return text !== undefined && (await judgeOwner(text)) === 'alive';
}

/** SECURITY: /dev/shm and /tmp are open to everybody; a folder that somebody else put there must not be used. */
async function makeStateDirectory(directory: string, searched = true): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 });
  if (!(await isOurFolder(directory))) {
    throw new HotcellError(
      'DRIVER_UNAVAILABLE',
      `${directory} belongs to somebody else or can be written by others`,
      {
        hint: `Remove it, or choose another folder with the setting stateDir.`,
      },
    );
  }
  if (!searched) return;
  // Only a folder that is ours alone is opened for search; one with other things in it keeps its mode.
  const names = await readdir(directory);
  const isOursAlone = names.every((name) =>
    [INSTANCE_ID, UNFINISHED_ID, LASTING_ID].some((form) => form.test(name)),
  );
  if (isOursAlone) await chmod(directory, 0o711);
  await requireSearchable(directory);
}

async function isOurFolder(directory: string): Promise<boolean> {
  const info = await lstat(directory).catch(() => undefined);
  return info?.isDirectory() === true && info.uid === process.geteuid?.() && (info.mode & 0o022) === 0;
}

/** The cells' own users must get through to their bundles, though they need not list anything on the way. */
async function requireSearchable(directory: string): Promise<void> {
  const { mode, uid } = await lstat(directory);
  const euid = process.geteuid?.();
  // Without root the cells have our own id, for which /run/user/<id> is open.
  const needed = euid !== 0 && uid === euid ? 0o100 : 0o001;
  if ((mode & needed) === 0) {
    throw new HotcellError(
      'DRIVER_UNAVAILABLE',
      `cells cannot get through ${directory}: only its owner may search it`,
      {
        hint: `Choose another folder with the setting stateDir, or: chmod o+x ${directory}`,
      },
    );
  }
  if (dirname(directory) !== directory) await requireSearchable(dirname(directory));
}
