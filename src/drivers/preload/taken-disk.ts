import { readdirSync, statSync } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';

const BLOCK = 512;
/** As much as a small file may take beside its content. */
const ENTRY = 512;

/** Bytes below `folder`, counted until there are more than `enough`; links are not followed. */
export async function takenBelow(folder: string, enough: number): Promise<number> {
  let taken = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined && taken <= enough; next = folders.pop()) {
    const entries = await opendir(next).catch(() => undefined);
    if (entries === undefined) continue;
    for await (const entry of entries) {
      const path = join(next, entry.name);
      const info = await lstat(path).catch(() => undefined);
      taken += ENTRY + (info?.blocks ?? 0) * BLOCK;
      if (info?.isDirectory() === true) folders.push(path);
      if (taken > enough) break;
    }
  }
  return taken;
}

/** Bytes of files that have no name any more and that one of these processes holds open. */
export function takenUnnamed(pids: readonly number[]): number {
  const files = new Map<string, number>();
  for (const pid of pids) {
    for (const path of descriptorsOf(pid)) {
      const info = statSync(path, { throwIfNoEntry: false });
      if (info?.isFile() === true && info.nlink === 0)
        files.set(`${info.dev}:${info.ino}`, info.blocks * BLOCK);
    }
  }
  return [...files.values()].reduce((total, bytes) => total + bytes, 0);
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((name) => `/proc/${pid}/fd/${name}`);
  } catch {
    return [];
  }
}
