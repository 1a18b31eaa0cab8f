import { readdir, statfs } from 'node:fs/promises';
import { HotcellError } from '../../core/errors.ts';
import { toSizeText } from '../../lib/size-text.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetMachine } from '../fleet-machine.ts';
import type { FleetSite } from '../fleet-site.ts';
import { workerWorktree } from '../names.ts';
import type { PreparedFleet } from './fleet-run.ts';

/** What sees to `resources.worktree_disk`, as the state and the start have it. */
export interface WorktreeBound {
  readonly kind: 'kernel' | 'watched';
  /** Why it is not the kernel. */
  readonly why?: string;
}

export interface BoundFacts {
  /** Worktrees of an earlier run are on file systems of their own. */
  readonly hasVolumes: boolean;
  /** They are plain folders. */
  readonly hasFolders: boolean;
  /** Why this machine has no such file systems. */
  readonly problem: string | undefined;
  readonly isPlain: boolean;
  readonly inMemory: boolean;
  readonly freeBytes: number;
  readonly neededBytes: number;
}

/** For the host's git, its logs and everybody else. */
const SPARE_BYTES = 1024 ** 3;
const TMPFS = 0x01021994;

/** What an earlier run has left in worktrees is found again, so what there is decides first. */
export function planBound(facts: BoundFacts): WorktreeBound {
  const { problem, freeBytes, neededBytes } = facts;
  if (facts.hasVolumes && problem !== undefined)
    throw new HotcellError(
      'CELL_START_FAILED',
      `the worktrees of this feature are on file systems of their own, which cannot be mounted: ${problem}`,
      {
        hint: 'Go on as root on the machine that began, or clear the feature away with hotcell fleet cleanup.',
      },
    );
  if (facts.hasVolumes) return { kind: 'kernel' };
  const why =
    (facts.isPlain ? 'plain processes' : undefined) ??
    problem ??
    (facts.hasFolders ? 'plain folders since the last run' : undefined) ??
    (facts.inMemory ? 'the repository is in memory' : undefined) ??
    (neededBytes + SPARE_BYTES > freeBytes
      ? `no room on the disk for ${toSizeText(neededBytes)}, only ${toSizeText(freeBytes)}`
      : undefined);
  return why === undefined ? { kind: 'kernel' } : { kind: 'watched', why };
}

/** For people, as part of a sentence. */
export function describeBound(
  { resources }: Pick<FleetConfig, 'resources'>,
  { kind, why }: WorktreeBound,
): string {
  const reason = why === undefined ? '' : ` (${why})`;
  return `worktrees up to ${toSizeText(resources.worktree_disk)}, ${kind}${reason}`;
}

/** Looks, and changes nothing. */
export async function findBound(
  { volumes }: Pick<FleetMachine, 'volumes'>,
  site: Pick<FleetSite, 'mode' | 'driver'>,
  { paths, config, workers }: Pick<PreparedFleet, 'paths' | 'config' | 'workers'>,
): Promise<WorktreeBound> {
  const worktrees = Array.from({ length: workers }, (_, worker) => workerWorktree(paths, worker));
  const names = await Promise.all(worktrees.map((path) => readdir(path).catch(() => [])));
  const disk = await statfs(paths.root);
  return planBound({
    hasVolumes: await volumes.areIn(paths.volumes),
    hasFolders: names.some(({ length }) => length > 0),
    problem: volumes.whyNone(site.driver.traits),
    isPlain: site.mode !== 'container',
    inMemory: disk.type === TMPFS,
    freeBytes: disk.bavail * disk.bsize,
    // And one for the checks.
    neededBytes: (workers + 1) * config.resources.worktree_disk,
  });
}
