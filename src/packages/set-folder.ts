import { randomBytes } from 'node:crypto';
import { lstatSync, readFileSync, utimesSync } from 'node:fs';
import { chmod, lstat, mkdir, open, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { InstalledPackage } from '../core/installed-package.ts';
import { HotcellError } from '../core/errors.ts';
import { setKey } from './install-request.ts';
import { parseJson } from '../lib/parse-json.ts';
import { isNameTaken } from '../lib/errno.ts';

/** Tells whether a server is still alive that left something unfinished. */
export interface Owners {
  /** Names this process. */
  record(): Promise<string>;
  isAlive(record: string): Promise<boolean>;
}

const MARKER = 'packages.json';
const FOLDERS: readonly string[] = ['store', 'resolved', 'staging'];
const OWNER = 'owner.json';
const CONTENT = 'set';
const KEY = /^[0-9a-f]{64}$/;
/** Of what does not say yet whose it is. */
const UNCLAIMED = '.new-';
const UNCLAIMED_MS = 60_000;

/** Written last: a set without it is none. */
const Marker = z.strictObject({
  platform: z.string(),
  bytes: z.int().nonnegative(),
  packages: z.array(InstalledPackage),
  /** Folders that must be there. */
  places: z.array(z.string()),
});
export type SetFacts = z.infer<typeof Marker>;

const Resolved = z.strictObject({ key: z.string().regex(KEY) });

export interface SetFolderOptions {
  readonly path: string;
  /** Its name in the folder of a set. */
  readonly lockFile: string;
  readonly owners: Owners;
}

/** A folder that becomes a set, or is given up. */
export interface StagedSet {
  /** Empty, and nobody else's. */
  readonly folder: string;
  /** Says whether it is ours that is there now; another server may have been faster. */
  commit(key: string, facts: SetFacts): Promise<boolean>;
  discard(): Promise<void>;
}

/**
 * The sets of packages on disk: `store/<key>` with the packages, their lock file and `packages.json`, and in `resolved/` which request led
 * to which. A set appears whole, by a rename, is never changed, and disappears by a rename. Several servers may have the
 * same folder.
 */
export class SetFolder {
  readonly path: string;
  readonly #lockFile: string;
  readonly #owners: Owners;

  private constructor({ path, lockFile, owners }: SetFolderOptions) {
    this.path = path;
    this.#lockFile = lockFile;
    this.#owners = owners;
  }

  /** Removes what dead servers left unfinished. */
  static async open(options: SetFolderOptions): Promise<SetFolder> {
    const { path } = options;
    const folder = new SetFolder(options);
    await mkdir(path, { recursive: true });
    await requireOwn(path);
    // Only a folder that is ours alone is opened to others; one with other things in it keeps its mode.
    if ((await readdir(path)).every((name) => FOLDERS.includes(name))) await chmod(path, 0o755);
    for (const name of FOLDERS) {
      await mkdir(join(path, name), { recursive: true });
      // Whoever the programs of cells are, they must get through.
      await chmod(join(path, name), name === 'store' ? 0o755 : 0o700);
    }
    await folder.#sweep();
    return folder;
  }

  /** What a request led to. */
  resolved(id: string): string | undefined {
    try {
      return Resolved.safeParse(parseJson(readFileSync(this.#resolvedPath(id), 'utf8'))).data?.key;
    } catch {
      return undefined;
    }
  }

  async remember(id: string, key: string): Promise<void> {
    const unfinished = join(this.path, 'staging', `${UNCLAIMED}${randomBytes(8).toString('hex')}.json`);
    await writeFile(unfinished, JSON.stringify({ key }));
    await rename(unfinished, this.#resolvedPath(id));
  }

  /**
   * A set that is there, whole; notes that it is used. Without waiting: every run asks, and a busy machine takes longer to
   * come back to us than to read small files.
   */
  load(key: string): SetFacts | undefined {
    if (!KEY.test(key)) return undefined;
    const folder = this.#setPath(key);
    try {
      // First, so that nobody removes it while we look.
      const now = new Date();
      utimesSync(join(folder, MARKER), now, now);
      const facts = Marker.parse(JSON.parse(readFileSync(join(folder, MARKER), 'utf8')));
      const lock = readFileSync(join(folder, this.#lockFile), 'utf8');
      if (setKey(facts.platform, lock) !== key) return undefined;
      for (const place of facts.places) if (!isFolder(join(folder, place))) return undefined;
      return facts;
    } catch {
      return undefined;
    }
  }

  async stage(): Promise<StagedSet> {
    const name = randomBytes(8).toString('hex');
    const unfinished = join(this.path, 'staging', `${UNCLAIMED}${name}`);
    await mkdir(join(unfinished, CONTENT), { recursive: true });
    await chmod(join(unfinished, CONTENT), 0o755);
    await writeFile(join(unfinished, OWNER), await this.#owners.record());
    // It gets its name only when it says whose it is: whoever looks is about to remove it.
    const staging = join(this.path, 'staging', name);
    await rename(unfinished, staging);
    const folder = join(staging, CONTENT);
    const discard = async (): Promise<void> => rm(staging, { recursive: true, force: true });
    return {
      folder,
      discard,
      commit: async (key, facts) => {
        await writeMarker(folder, facts);
        const isOurs = await this.#moveIn(folder, key);
        await discard();
        return isOurs;
      },
    };
  }

  /**
   * Removes those sets that were not used for the longest time, until the others have no more than `mostBytes`. Spares
   * those in `held` and those used after `usedSince`. Returns the keys of those removed.
   */
  async shrink(mostBytes: number, usedSince: number, held: ReadonlySet<string>): Promise<string[]> {
    const sets = await this.#list();
    let bytes = sets.reduce((total, set) => total + set.bytes, 0);
    const removed: string[] = [];
    for (const { key, usedAt, bytes: freed } of sets.toSorted((one, other) => one.usedAt - other.usedAt)) {
      if (bytes <= mostBytes) break;
      if (held.has(key) || usedAt >= usedSince || !(await this.#remove(key, usedSince))) continue;
      bytes -= freed;
      removed.push(key);
    }
    return removed;
  }

  async #list(): Promise<{ key: string; usedAt: number; bytes: number }[]> {
    const names = await readdir(join(this.path, 'store'));
    const sets = names
      .filter((name) => KEY.test(name))
      .map(async (key) => {
        const marker = join(this.#setPath(key), MARKER);
        const usedAt = await lstat(marker).then(
          ({ mtimeMs }) => mtimeMs,
          () => 0,
        );
        const text = await readFile(marker, 'utf8').catch(() => '');
        return { key, usedAt, bytes: Marker.safeParse(parseJson(text)).data?.bytes ?? 0 };
      });
    return Promise.all(sets);
  }

  /** Says whether it is gone. */
  async #remove(key: string, usedSince: number): Promise<boolean> {
    const trash = await this.stage();
    try {
      await rename(this.#setPath(key), trash.folder);
      const { mtimeMs } = await lstat(join(trash.folder, MARKER)).catch(() => ({ mtimeMs: 0 }));
      if (mtimeMs < usedSince) return true;
      // Another server has taken it in this very moment.
      await rename(trash.folder, this.#setPath(key));
      return false;
    } catch {
      return false;
    } finally {
      await trash.discard();
    }
  }

  /** Says whether the set is the one that was moved. */
  async #moveIn(folder: string, key: string): Promise<boolean> {
    const target = this.#setPath(key);
    for (let attempt = 0; ; attempt++) {
      try {
        await rename(folder, target);
        await syncFolder(join(this.path, 'store'));
        return true;
      } catch (error) {
        if (!isNameTaken(error) || attempt > 2) throw error;
        if (this.load(key) !== undefined) return false;
        // Somebody has taken pieces out of it by hand.
        await this.#remove(key, Number.POSITIVE_INFINITY);
      }
    }
  }

  /** Removes what servers that are no longer alive had begun. */
  async #sweep(): Promise<void> {
    const staging = join(this.path, 'staging');
    for (const name of await readdir(staging)) {
      const path = join(staging, name);
      const isInUse = name.startsWith(UNCLAIMED)
        ? Date.now() - (await lstat(path).catch(() => ({ mtimeMs: 0 }))).mtimeMs < UNCLAIMED_MS
        : await this.#owners.isAlive(await readFile(join(path, OWNER), 'utf8').catch(() => ''));
      if (!isInUse) await rm(path, { recursive: true, force: true });
    }
  }

  #setPath(key: string): string {
    return join(this.path, 'store', key);
  }

  #resolvedPath(id: string): string {
    return join(this.path, 'resolved', `${id}.json`);
  }
}

async function writeMarker(folder: string, facts: SetFacts): Promise<void> {
  await using marker = await open(join(folder, MARKER), 'wx', 0o644);
  await marker.writeFile(JSON.stringify(facts));
  await marker.chmod(0o644);
  await marker.sync();
  await syncFolder(folder);
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

/** SECURITY: a user who can write to the folder of another user decides what the other's programs import. */
async function requireOwn(path: string): Promise<void> {
  const info = await lstat(path);
  const isOwn = info.isDirectory() && info.uid === process.geteuid?.() && (info.mode & 0o022) === 0;
  if (isOwn) return;
  throw new HotcellError('CONFIG_INVALID', `${path} belongs to somebody else or can be written by others`, {
    hint: 'Remove it, or choose another folder for packages.',
  });
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
