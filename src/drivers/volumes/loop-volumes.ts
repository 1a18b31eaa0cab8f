import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  readFile,
  readdir,
  rename,
  rm,
  rmdir,
  stat,
  statfs,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { TMP_OF_WORKSPACE } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { UnusedIds } from '../linux/unused-ids.ts';
import { errnoOf } from '../../lib/errno.ts';
import { runCommand } from '../process/run-command.ts';
import { holdsNoFiles, keepDependencies } from './keep-dependencies.ts';
import { mountPoints } from './mount-table.ts';
import { share, unmount } from './mounts.ts';

/** Beside every image: whose files are in it, since when nobody has used it, and whether anybody ever has. */
const Record = z.object({
  owner: z.int().positive(),
  releasedAt: z.number().nullable(),
  unused: z.literal(true).optional(),
});
type Record = z.infer<typeof Record>;

const NAME = /^[0-9a-f]{24}$/;
const UNFINISHED = '.new-';
const TEMPLATE = 'template-';
const SLOW_MS = 60_000;
/** A journal of the usual size would be half of such a file system, or more than mkfs puts up with. */
const SMALL_BYTES = 32 * 1024 * 1024;

/**
 * Bounded file systems: one image per project, mounted where cells can bind it. The kernel refuses what does not fit. A
 * mounted one has all its room on the host's disk, one that is kept takes what is in it. Everything on disk can be read
 * again after a crash: an image gets its name when it is whole, and what is mounted stands in the kernel's own table.
 */
export class LoopVolumes {
  readonly #directory: string;
  readonly #keepForMs: number;
  readonly #log: Log;
  readonly #ids = new UnusedIds();
  /** One thing at a time for each volume. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #prepared: Promise<void> | undefined;
  readonly #templates = new Map<number, Promise<string>>();

  constructor(options: { readonly directory: string; readonly keepForMs: number; readonly log: Log }) {
    this.#directory = options.directory;
    this.#keepForMs = options.keepForMs;
    this.#log = options.log;
  }

  /**
   * Must come before anything that makes cells: a runtime may work in a mount namespace of its own, and sees what is
   * mounted later only below a mount that is shared.
   */
  async prepare(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o711 });
    await share(this.#directory);
  }

  /** Leaves the volumes to those who use them; with the last one that is mounted everything goes that can be made again. */
  async close(): Promise<void> {
    if ((await this.#mounted()).size > 0) return;
    this.#templates.clear();
    for (const entry of await readdir(this.#directory).catch(() => []))
      if (entry.startsWith(TEMPLATE)) await rm(join(this.#directory, entry), { force: true });
    if ((await mountPoints()).has(this.#directory)) await unmount(this.#directory);
  }

  open(key: string, diskBytes: number): Promise<{ folder: string; owner: number; fresh: boolean }> {
    const name = toName(key);
    return this.#inTurn(name, async () => {
      await (this.#prepared ??= this.prepare());
      const fresh = !existsSync(this.#image(name));
      if (fresh) await this.#make(name, diskBytes);
      else await this.#mountAgain(name, diskBytes);
      const { owner } = await this.#readRecord(name);
      await this.#writeRecord(name, { owner, releasedAt: null });
      return { folder: this.#folder(name), owner, fresh };
    });
  }

  async release(key: string, keep: 'dependencies' | 'all' | 'nothing'): Promise<void> {
    const name = toName(key);
    await this.#inTurn(name, async () => {
      const isEmpty = keep === 'nothing' || (keep === 'dependencies' && !(await this.#prune(name)));
      if (isEmpty || !existsSync(this.#image(name))) return this.#remove(name);
      await this.#keep(name, await this.#readRecord(name));
    });
  }

  /** Gives back the room that nothing is in. After a crash of the host it is not even mounted. */
  async #keep(name: string, { owner }: Record): Promise<void> {
    const folder = this.#folder(name);
    try {
      await this.#mountAgain(name);
      // The room of what was removed just now is free as soon as that is on the disk.
      await runCommand(['sync', '-f', folder], { timeoutMs: SLOW_MS });
      await runCommand(['fstrim', folder], { timeoutMs: SLOW_MS });
      await unmount(folder);
    } finally {
      await this.#writeRecord(name, { owner, releasedAt: Date.now() });
    }
  }

  /** False when nothing is worth keeping, and when somebody has made something that cannot be removed piece by piece. */
  async #prune(name: string): Promise<boolean> {
    if (!existsSync(this.#image(name))) return false;
    try {
      // A server that was killed amid this may have got as far as letting go of it.
      await this.#mountAgain(name);
      return await keepDependencies(this.#folder(name));
    } catch (error) {
      this.#log.warn({ volume: name, error: String(error) }, 'volume pruning failed');
      return false;
    }
  }

  async usedBytes(key: string): Promise<number | undefined> {
    const folder = this.#folder(toName(key));
    if (!(await this.#mounted()).has(folder)) return undefined;
    const { blocks, bfree, bsize } = await statfs(folder);
    return (blocks - bfree) * bsize;
  }

  /** Lets go of all but these, and removes what nobody has used for a long time. */
  async reclaim(keepKeys: ReadonlySet<string>): Promise<void> {
    const keep = new Set([...keepKeys].map(toName));
    const entries = await readdir(this.#directory).catch(() => []);
    for (const entry of entries.filter((word) => word.startsWith(UNFINISHED)))
      await rm(join(this.#directory, entry), { force: true });
    const names = new Set(
      entries.map((entry) => entry.split('.')[0] ?? '').filter((word) => NAME.test(word)),
    );
    for (const name of names) {
      if (keep.has(name)) continue;
      await this.#inTurn(name, () => this.#reclaimOne(name)).catch((error: unknown) =>
        this.#log.warn({ volume: name, error: String(error) }, 'volume release failed'),
      );
    }
  }

  async #reclaimOne(name: string): Promise<void> {
    const folder = this.#folder(name);
    const isMounted = (await this.#mounted()).has(folder);
    // A session that was never there: the server was killed while it made one.
    const isEmpty = isMounted && (await holdsNoFiles(folder));
    const record = existsSync(this.#image(name))
      ? await this.#readRecord(name).catch(() => undefined)
      : undefined;
    if (record === undefined || record.unused === true || isEmpty) return this.#remove(name);
    const releasedAt = record.releasedAt ?? Date.now();
    if (Date.now() - releasedAt > this.#keepForMs) return this.#remove(name);
    if (record.releasedAt === null || isMounted) await this.#keep(name, record);
  }

  async #make(name: string, diskBytes: number): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o711 });
    const template = await this.#template(diskBytes);
    await this.#lay(this.#image(name), async (unfinished) => {
      // What is shared with the template would need room when it is written to.
      await this.#run(['cp', '--sparse=always', '--reflink=never', template, unfinished]);
      await this.#reserve(unfinished, diskBytes);
      await this.#writeRecord(name, { owner: this.#ids.next() + 1, releasedAt: null, unused: true });
    });
    await this.#mount(name);
  }

  /** Making a file system takes longer than copying one. */
  #template(diskBytes: number): Promise<string> {
    const making = this.#templates.get(diskBytes) ?? this.#makeTemplate(diskBytes);
    this.#templates.set(diskBytes, making);
    making.catch(() => this.#templates.delete(diskBytes));
    return making;
  }

  async #makeTemplate(diskBytes: number): Promise<string> {
    const path = join(this.#directory, `${TEMPLATE}${diskBytes}`);
    if (existsSync(path)) return path;
    // An inode for every 8 KiB: packages are many small files. All of it is for the cell, nothing is kept for root.
    const flags = [
      '-q',
      '-F',
      '-m',
      '0',
      '-i',
      '8192',
      '-J',
      `size=${diskBytes < SMALL_BYTES ? 1 : 4}`,
      '-E',
      'lazy_itable_init=0,lazy_journal_init=0',
    ];
    await this.#lay(path, async (unfinished) => {
      await writeFile(unfinished, '', { mode: 0o600 });
      await truncate(unfinished, diskBytes);
      await this.#run(['mkfs.ext4', ...flags, unfinished]);
    });
    return path;
  }

  /**
   * A file system whose image finds no room on the disk loses its journal, and nothing can be written to it any more. So
   * the room is there from the beginning, or nothing begins.
   */
  async #reserve(image: string, bytes: number): Promise<void> {
    const { blocks } = await stat(image);
    const { bavail, bsize } = await statfs(image);
    // What was granted in part would not be given back.
    if (bytes - blocks * 512 > bavail * bsize)
      throw this.#toError('reserving failed: no space left on device');
    await this.#run(['fallocate', '--posix', '--length', String(bytes), image]);
  }

  async #mountAgain(name: string, diskBytes = 0): Promise<void> {
    if ((await this.#mounted()).has(this.#folder(name))) return;
    await this.#grow(this.#image(name), diskBytes);
    await this.#mount(name);
  }

  async #grow(image: string, diskBytes: number): Promise<void> {
    const { size } = await stat(image);
    await this.#reserve(image, Math.max(size, diskBytes));
    if (size >= diskBytes) return;
    await this.#run(['e2fsck', '-f', '-p', image], [0, 1]);
    await this.#run(['resize2fs', image]);
    // Zeros were written as holes.
    await this.#reserve(image, diskBytes);
  }

  async #mount(name: string): Promise<void> {
    const folder = this.#folder(name);
    const { owner } = await this.#readRecord(name);
    await mkdir(folder, { recursive: true, mode: 0o711 });
    await this.#run(['mount', '-t', 'ext4', '-o', 'loop,nosuid,nodev,noatime', this.#image(name), folder]);
    await chown(folder, owner, owner);
    await chmod(folder, 0o755);
    await rmdir(join(folder, 'lost+found')).catch(() => {});
    const tmp = join(folder, TMP_OF_WORKSPACE);
    // By a program that gets to any depth.
    await this.#run(['rm', '-rf', '--', tmp]);
    await mkdir(tmp);
    await chown(tmp, owner, owner);
    await chmod(tmp, 0o1777);
  }

  async #remove(name: string): Promise<void> {
    const folder = this.#folder(name);
    if ((await this.#mounted()).has(folder)) await unmount(folder);
    await rm(this.#image(name), { force: true });
    await rm(this.#recordFile(name), { force: true });
    await rmdir(folder).catch(() => {});
  }

  async #readRecord(name: string): Promise<Record> {
    return Record.parse(JSON.parse(await readFile(this.#recordFile(name), 'utf8')));
  }

  async #writeRecord(name: string, record: Record): Promise<void> {
    await this.#lay(this.#recordFile(name), (unfinished) =>
      writeFile(unfinished, JSON.stringify(record), { mode: 0o600 }),
    );
  }

  /** A file that has its name only when it is whole. */
  async #lay(path: string, fill: (unfinished: string) => Promise<void>): Promise<void> {
    const unfinished = join(this.#directory, `${UNFINISHED}${randomBytes(6).toString('hex')}`);
    try {
      await fill(unfinished);
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw errnoOf(error) === 'ENOSPC' ? this.#toError('writing failed: no space left on device') : error;
    }
  }

  async #mounted(): Promise<Set<string>> {
    const below = [...(await mountPoints())].filter((path) => path.startsWith(`${this.#directory}/`));
    return new Set(below);
  }

  #inTurn<Result>(name: string, action: () => Promise<Result>): Promise<Result> {
    const turn = (this.#turns.get(name) ?? Promise.resolve()).then(action, action);
    this.#turns.set(name, turn);
    const forget = (): void => {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    };
    turn.then(forget, forget);
    return turn;
  }

  async #run(words: readonly [string, ...string[]], good: readonly number[] = [0]): Promise<void> {
    const { code, stderr } = await runCommand(words, { timeoutMs: SLOW_MS });
    if (good.includes(code)) return;
    throw this.#toError(`${words[0]} failed: ${stderr.trim()}`);
  }

  #toError(message: string): HotcellError {
    return new HotcellError('SESSIONS_UNAVAILABLE', message, {
      hint: /no space left/i.test(message)
        ? `Free space below ${this.#directory}.`
        : 'Run `hotcell doctor` on the host; it says what bounded file systems need.',
    });
  }

  #image = (name: string): string => join(this.#directory, `${name}.img`);
  #recordFile = (name: string): string => join(this.#directory, `${name}.json`);
  #folder = (name: string): string => join(this.#directory, name);
}

/** Keys hold names from outside; none of them becomes a path. */
function toName(key: string): string {
  return createHash('sha256').update(key).digest('hex').slice(0, 24);
}
