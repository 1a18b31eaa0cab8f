import { lstat, stat } from 'node:fs/promises';
import { join, normalize, relative, sep } from 'node:path';
import type { CellFolder } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { GUEST_IN_CELL, WORKDIR_IN_CELL } from './cell-paths.ts';

/** Where cells have things of their own, which a folder would hide, or which would hide the folder. */
const TAKEN = [WORKDIR_IN_CELL, GUEST_IN_CELL, '/dev', '/proc', '/run', '/sys'];

/** A folder of the spec and what it lies in. */
export interface PlannedFolder extends CellFolder {
  /** The folder before it that has its mount point; undefined where the root of the cell has it. */
  readonly outer: CellFolder | undefined;
}

export interface BoundFolder extends PlannedFolder {
  readonly isFile: boolean;
}

/** Which lies in which. Pure. Refuses what would be hidden by another mount. */
export function planFolders(folders: readonly CellFolder[]): PlannedFolder[] {
  return folders.map((folder, index) => {
    const { at, name } = folder;
    if (!at.startsWith('/') || normalize(`${at}/`) !== `${at}/` || at.includes('\0'))
      throw new HotcellError('INTERNAL', `folder ${name}: ${at} is no place in a cell`);
    const taken = TAKEN.find((place) => isIn(at, place) || isIn(place, at));
    if (taken !== undefined)
      throw new HotcellError('INTERNAL', `folder ${name}: ${at} would get in the way of ${taken}`);
    const before = folders.slice(0, index);
    const hidden = before.find((other) => isIn(other.at, at));
    if (hidden !== undefined)
      throw new HotcellError('INTERNAL', `folder ${name} would hide ${hidden.name}, which comes before it`);
    const around = before.filter((other) => isIn(at, other.at));
    const outer = around.toSorted((one, other) => other.at.length - one.at.length)[0];
    return { ...folder, outer };
  });
}

/** Is it this place or below it? */
function isIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

/**
 * Looks at what is to be mounted, and whether a mount that lies in another finds something to lie on.
 * SECURITY: a runtime makes what is missing, which would be on the host, and follows links, so that the mount might end up
 * elsewhere and leave its place uncovered. A folder with mounts in it is written to by no other cell meanwhile.
 */
export async function inspectFolders(folders: readonly CellFolder[]): Promise<BoundFolder[]> {
  return Promise.all(
    planFolders(folders).map(async (folder) => {
      const isFile = await isPlainFile(folder.folder);
      if (folder.outer !== undefined) await requireMountPoint(folder.outer, folder.at, isFile);
      return { ...folder, isFile };
    }),
  );
}

async function isPlainFile(path: string): Promise<boolean> {
  const info = await stat(path).catch(() => undefined);
  if (info?.isDirectory() === true) return false;
  if (info?.isFile() === true) return true;
  throw new HotcellError('CELL_START_FAILED', `${path} is neither a folder nor a plain file`);
}

async function requireMountPoint(outer: CellFolder, at: string, isFile: boolean): Promise<void> {
  const words = relative(outer.at, at).split(sep);
  const places = words.map((_, index) => join(outer.folder, ...words.slice(0, index + 1)));
  const infos = await Promise.all(places.map((place) => lstat(place).catch(() => undefined)));
  const isWay = infos.slice(0, -1).every((info) => info?.isDirectory() === true);
  const last = infos.at(-1);
  if (isWay && (isFile ? last?.isFile() : last?.isDirectory()) === true) return;
  const wanted = isFile ? 'file' : 'folder';
  throw new HotcellError(
    'CELL_START_FAILED',
    `${outer.folder} has no plain ${wanted} ${words.join('/')} that another could be mounted on`,
  );
}
