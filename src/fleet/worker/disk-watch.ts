import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError } from '../../core/errors.ts';
import { toSizeText } from '../../lib/size-text.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { PlaceGit } from '../git/place-git.ts';

/** What sees to `resources.worktree_disk`, as the state and the start have it. */
export const WORKTREE_BOUND = 'watched';

const LOOK_MS = 5000;
/** A look may take that much of the time: large worktrees are looked at less often. */
const SHARE = 1 / 20;

export interface DiskParts {
  readonly git: Pick<PlaceGit, 'sizeOnDisk'>;
  readonly config: Pick<FleetConfig, 'resources'>;
}

/** For people, as part of a sentence. */
export function describeWorktreeBound({ resources }: Pick<FleetConfig, 'resources'>): string {
  return `worktrees up to ${toSizeText(resources.worktree_disk)}, ${WORKTREE_BOUND}`;
}

/** The error of a place that takes more than it may. */
export async function findOvergrowth({ git, config }: DiskParts): Promise<HotcellError | undefined> {
  const limit = config.resources.worktree_disk;
  const bytes = await git.sizeOnDisk();
  if (bytes === undefined || bytes <= limit) return undefined;
  return new HotcellError(
    'WORKTREE_TOO_LARGE',
    `the worktree takes ${toSizeText(bytes)}, and resources.worktree_disk is ${toSizeText(limit)}`,
  );
}

/** Looks again and again, until it has found something or nobody wants to know any more. */
export async function awaitOvergrowth(
  parts: DiskParts,
  signal: AbortSignal,
): Promise<HotcellError | undefined> {
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
