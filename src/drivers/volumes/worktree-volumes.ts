import { mkdir, readdir, realpath, rmdir, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { HotcellError, toHotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { LoopVolumes } from './loop-volumes.ts';
import { detach, mount, mountsBelow, share, unmount } from './mounts.ts';

/** The kernel gives room by pieces of some MB at most, and refuses one when it has less. */
const PIECE_BYTES = 8 * 1024 ** 2;
/** Of a small file system it is another part that counts. */
const SHARE = 1 / 16;

export interface WorktreeVolumesOptions {
  /** For the images. */
  readonly directory: string;
  /** The worktrees are in it, by their keys or not. */
  readonly worktrees: string;
  readonly log: Log;
}

/**
 * A bounded file system for each place of a fleet, with its worktree and the git folder of its cell; the worktree is shown where
 * people look for it. What is mounted goes when the orchestrator ends, the images stay until their places are removed.
 */
export class WorktreeVolumes {
  readonly #options: WorktreeVolumesOptions;
  readonly #volumes: LoopVolumes;
  /** Where the worktree of an open volume is shown, by key. */
  readonly #open = new Map<string, string>();

  private constructor(options: WorktreeVolumesOptions) {
    this.#options = options;
    const { directory, log } = options;
    this.#volumes = new LoopVolumes({ directory, keepForMs: Number.MAX_SAFE_INTEGER, log });
  }

  /** Did a run before this one have any? */
  static async areIn(directory: string): Promise<boolean> {
    return (await readdir(directory).catch(() => [])).some((name) => name.endsWith('.img'));
  }

  /**
   * Lets go of what a killed orchestrator has left mounted. Precondition: its cells are gone, and nobody else has this folder.
   * Before cells are made: see `LoopVolumes.prepare`.
   */
  static async prepare(options: WorktreeVolumesOptions): Promise<WorktreeVolumes> {
    const { directory, worktrees, log } = options;
    await mkdir(directory, { recursive: true });
    await mkdir(worktrees, { recursive: true });
    // By their real names: the kernel's table has no others.
    const real = { directory: await realpath(directory), worktrees: await realpath(worktrees), log };
    const volumes = new WorktreeVolumes(real);
    for (const path of await mountsBelow([real.worktrees])) await volumes.#hide(path);
    await share(real.worktrees);
    await volumes.#volumes.prepare();
    await volumes.#volumes.reclaim(new Set());
    return volumes;
  }

  async open(key: string, bytes: number, worktree: string) {
    const { folder, fresh } = await this.#volumes.open(key, bytes).catch((error: unknown) => {
      const { message, hint } = toHotcellError(error);
      throw new HotcellError('CELL_START_FAILED', `no file system for the worktree: ${message}`, {
        hint,
        cause: error,
      });
    });
    const tree = join(folder, 'tree');
    await mkdir(tree, { recursive: true });
    await this.#show(key, tree, worktree);
    return { tree, git: join(folder, 'git'), beside: folder, fresh, isFull: () => isFull(folder) };
  }

  async #show(key: string, tree: string, worktree: string): Promise<void> {
    await mkdir(worktree, { recursive: true });
    const shown = await realpath(worktree);
    this.#open.set(key, shown);
    if ((await mountsBelow([dirname(shown)])).includes(shown)) return;
    await mount(['--bind', tree, shown]);
  }

  async #hide(path: string): Promise<void> {
    await unmount(path).catch((error: unknown) =>
      // Somebody stands in it. It is the same file system when it is mounted again.
      this.#options.log.warn({ path, error: String(error) }, 'worktree still mounted'),
    );
  }

  /** With everything in it. */
  async remove(key: string): Promise<void> {
    const shown = this.#open.get(key);
    this.#open.delete(key);
    if (shown !== undefined && (await mountsBelow([dirname(shown)])).includes(shown)) await detach(shown);
    await this.#volumes.release(key, 'nothing');
  }

  /** The contents stay, for the next orchestrator. */
  async close(): Promise<void> {
    for (const [key, shown] of this.#open) {
      await this.#hide(shown);
      await this.#volumes
        .release(key, 'all')
        .catch((error: unknown) =>
          this.#options.log.warn({ place: key, error: String(error) }, 'volume release failed'),
        );
    }
    this.#open.clear();
    const { directory, worktrees } = this.#options;
    // Whoever has copied our mounts may hold an image for as long as they live.
    await this.#volumes.close().catch(() => detach(directory));
    if ((await mountsBelow([worktrees])).includes(worktrees)) await this.#hide(worktrees);
    // Unless images are left.
    await rmdir(directory).catch(() => {});
  }
}

async function isFull(folder: string): Promise<boolean> {
  const { blocks, bavail, bsize, ffree } = await statfs(folder);
  return bavail * bsize < Math.min(PIECE_BYTES, blocks * bsize * SHARE) || ffree === 0;
}
