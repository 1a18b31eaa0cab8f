import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { toSizeText } from '../../lib/size-text.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { PlaceGit } from '../git/place-git.ts';
import type { Room } from '../worktree-volumes.ts';

const LOOK_MS = 5000;
/** A look may take that much of the time: large worktrees are looked at less often. */
const SHARE = 1 / 20;
/** As the system says it, and git where it writes files. */
const NO_SPACE = /no space left on device|unable to write file/i;

export interface DiskParts {
  readonly git: Pick<PlaceGit, 'sizeOnDisk'>;
  readonly config: Pick<FleetConfig, 'resources'>;
  /** The kernel bounds the place; otherwise it has to be measured. */
  readonly room?: Pick<Room, 'isFull'> | undefined;
}

/** The error of a place that takes more than it may, or would if it could. */
export async function findOvergrowth({ git, config, room }: DiskParts): Promise<HotcellError | undefined> {
  if (room !== undefined) return (await room.isFull()) ? toFull(config) : undefined;
  const limit = config.resources.worktree_disk;
  const bytes = await git.sizeOnDisk();
  if (bytes === undefined || bytes <= limit) return undefined;
  return new HotcellError(
    'WORKTREE_TOO_LARGE',
    `the worktree takes ${toSizeText(bytes)}, and resources.worktree_disk is ${toSizeText(limit)}`,
  );
}

function toFull({ resources }: Pick<FleetConfig, 'resources'>, cause?: unknown): HotcellError {
  const bound = `no space is left in the worktree, and resources.worktree_disk is ${toSizeText(resources.worktree_disk)}`;
  return new HotcellError(
    'WORKTREE_TOO_LARGE',
    cause === undefined ? bound : `${bound}: ${messageOf(cause)}`,
    { cause },
  );
}

/** What `error` means that came of filling a place: programs that find no room remove again what they have written. */
export function explainNoSpace({ config, room }: DiskParts, error: unknown): unknown {
  return room !== undefined && NO_SPACE.test(messageOf(error)) ? toFull(config, error) : error;
}

/** For a failure whose words complain of a disk, though the worktree has room by now. */
export function adviseOnSpace(
  { config: { resources }, room }: Pick<DiskParts, 'config' | 'room'>,
  words: string,
): string {
  if (room === undefined || !NO_SPACE.test(words)) return words;
  const worktree = `the worktree may take ${toSizeText(resources.worktree_disk)} (resources.worktree_disk)`;
  return `${words}\nOf space, ${worktree}, and /tmp ${toSizeText(resources.container_tmp)} (resources.container_tmp)`;
}

/**
 * Looks again and again, until it has found something or nobody wants to know any more. Not where the kernel bounds the
 * place: there a program may make room again.
 */
export async function awaitOvergrowth(
  parts: DiskParts,
  signal: AbortSignal,
): Promise<HotcellError | undefined> {
  if (parts.room !== undefined) return undefined;
  for (let pauseMs = LOOK_MS; await pause(pauseMs, signal);) {
    const begun = performance.now();
    const found = await findOvergrowth(parts);
    if (found !== undefined) return found;
    pauseMs = Math.max(LOOK_MS, (performance.now() - begun) / SHARE);
  }
  return undefined;
}

/** False when nobody wants to know any more. */
async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => {});
  return !signal.aborted;
}
