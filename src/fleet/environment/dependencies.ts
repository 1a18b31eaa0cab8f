import { randomBytes } from 'node:crypto';
import { lstat, mkdir, open, readFile, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import type { CellOwner } from '../../core/cell.ts';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { canCopyTrees, copyTree } from './copy-tree.ts';
import type { SetupPlan } from './plan-setup.ts';
import { parseJson } from '../../lib/parse-json.ts';
import { exists } from '../git/hostile-tree.ts';
import { isAlive } from '../state/orchestrator-lock.ts';
import { isNameTaken } from '../../lib/errno.ts';

export interface DependencyCacheOptions {
  /** SECURITY: on the host, and no cell may see it. Made if it is not there; on the file system of the worktrees. */
  readonly folder: string;
  /** Whom restored files are given to. */
  readonly owner?: CellOwner | undefined;
  readonly log: Log;
  readonly mostBytes?: number;
  readonly mostEntries?: number;
}

const GiB = 1024 ** 3;
const KEY = /^[0-9a-f]{64}$/;
const MARKER = 'complete.json';
/** With the process that makes it: `.new-<pid>-<random>`. */
const UNFINISHED = /^\.new-(\d+)-[0-9a-f]{16}$/;
/** Nobody copies for so long; a process number may by then be another one's. */
const ABANDONED_MS = 24 * 3_600_000;

/** Written last: what has none is not whole. */
const Marker = z.strictObject({ products: z.array(z.string()) });

/**
 * What set-ups have made, by the key of their plan: installed once, copied afterwards. An entry appears whole, by a rename,
 * and is never changed; several orchestrators may share the folder.
 */
export class DependencyCache {
  readonly #options: DependencyCacheOptions;

  private constructor(options: DependencyCacheOptions) {
    this.#options = options;
  }

  /** Removes what a process that is gone had begun. */
  static async open(options: DependencyCacheOptions): Promise<DependencyCache> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    const cache = new DependencyCache(options);
    await cache.#sweep();
    return cache;
  }

  /** Is there an entry for this plan? */
  async has(plan: SetupPlan): Promise<boolean> {
    return (await this.#productsOf(plan)) !== undefined;
  }

  /**
   * Puts the products of the plan into a worktree that has none; says whether all of them are there. If not, nothing has
   * changed, and the command has to run. `beside` is a folder in the file system of the worktree, if that has one of its own.
   */
  async restore(plan: SetupPlan, worktree: string, beside = this.#options.folder): Promise<boolean> {
    const products = await this.#productsOf(plan);
    if (products === undefined || products.length === 0) return false;
    const { owner } = this.#options;
    return this.#staged({ products: plan.products, step: 'restore' }, beside, async (staging) => {
      await this.#copyAll(products, { from: join(this.#options.folder, plan.key), to: staging, owner });
      const moved: string[] = [];
      try {
        for (const product of products) {
          const target = join(worktree, product);
          // oxlint-disable-next-line no-await-in-loop -- All or none.
          if (await exists(target)) throw new Error(`${product} is there already`);
          // oxlint-disable-next-line no-await-in-loop -- As above.
          await rename(join(staging, product), target);
          moved.push(product);
        }
        return true;
      } catch (error) {
        // SECURITY: back here and removed here, because in the worktree a cell may put links in the way.
        await Promise.all(moved.map((product) => rename(join(worktree, product), join(staging, product))));
        throw error;
      }
    });
  }

  /**
   * Keeps what the command of the plan has made in a worktree; says whether there is an entry now. Precondition: nothing but the
   * command has run in this worktree, or others would get what the agent has made of it.
   */
  async keep(plan: SetupPlan, worktree: string): Promise<boolean> {
    if (plan.products.length === 0 || !KEY.test(plan.key)) return false;
    if (await this.has(plan)) return true;
    return this.#staged({ products: plan.products, step: 'keep' }, this.#options.folder, async (staging) => {
      const made = await Promise.all(
        plan.products.map(async (product) => ({ product, isMade: await isFolder(join(worktree, product)) })),
      );
      const products = made.filter(({ isMade }) => isMade).map(({ product }) => product);
      if (products.length === 0) return false;
      await this.#copyAll(products, { from: worktree, to: staging, owner: undefined });
      await writeMarker(staging, { products });
      await this.#moveIn(staging, plan);
      return true;
    });
  }

  async #copyAll(
    products: readonly string[],
    { from, to, owner }: { from: string; to: string; owner: CellOwner | undefined },
  ): Promise<void> {
    const { mostBytes = 4 * GiB, mostEntries = 500_000 } = this.#options;
    for (const product of products) {
      // oxlint-disable-next-line no-await-in-loop -- Each is large.
      await copyTree({ from: join(from, product), to: join(to, product), owner, mostBytes, mostEntries });
    }
  }

  /** Who was slower has the same, and drops it. */
  async #moveIn(staging: string, plan: SetupPlan): Promise<void> {
    const target = join(this.#options.folder, plan.key);
    try {
      await rename(staging, target);
    } catch (error) {
      if (!isNameTaken(error)) throw error;
      if (await this.has(plan)) return;
      // Somebody has taken pieces out of it by hand.
      await rm(target, { recursive: true, force: true });
      await rename(staging, target);
    }
  }

  /** With a folder of our own, which is gone afterwards. That nothing comes of it costs time, and nothing else. */
  async #staged(
    fields: object,
    folder: string,
    use: (staging: string) => Promise<boolean>,
  ): Promise<boolean> {
    if (!(await canCopyTrees())) return false;
    const { log } = this.#options;
    const staging = join(folder, `.new-${process.pid}-${randomBytes(8).toString('hex')}`);
    try {
      await mkdir(staging, { mode: 0o700 });
      return await use(staging);
    } catch (error) {
      log.warn({ ...fields, reason: messageOf(error) }, 'dependencies not copied');
      return false;
    } finally {
      await rm(staging, { recursive: true, force: true });
    }
  }

  async #productsOf({ key, products }: SetupPlan): Promise<readonly string[] | undefined> {
    if (!KEY.test(key)) return undefined;
    const entry = join(this.#options.folder, key);
    const text = await readFile(join(entry, MARKER), 'utf8').catch(() => '');
    const kept = Marker.safeParse(parseJson(text)).data?.products;
    if (kept === undefined || !kept.every((product) => products.includes(product))) return undefined;
    const are = await Promise.all(kept.map((product) => isFolder(join(entry, product))));
    return are.every(Boolean) ? kept : undefined;
  }

  async #sweep(): Promise<void> {
    const { folder } = this.#options;
    const names = await readdir(folder);
    await Promise.all(
      names.map(async (name) => {
        const [, pid] = UNFINISHED.exec(name) ?? [];
        if (pid === undefined) return;
        const path = join(folder, name);
        const age = Date.now() - ((await lstat(path).catch(() => undefined))?.mtimeMs ?? Date.now());
        if (age > ABANDONED_MS || !isAlive(Number(pid))) await rm(path, { recursive: true, force: true });
      }),
    );
  }
}

async function writeMarker(folder: string, marker: z.infer<typeof Marker>): Promise<void> {
  await using file = await open(join(folder, MARKER), 'wx', 0o600);
  await file.writeFile(JSON.stringify(marker));
  await file.sync();
}

async function isFolder(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined))?.isDirectory() === true;
}
