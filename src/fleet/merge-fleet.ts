import { HotcellError } from '../core/errors.ts';
import { findFleet } from './find-fleet.ts';
import type { FleetSurroundings } from './fleet-machine.ts';
import { findAuthor } from './git/author.ts';
import { lineOf, splitNul, type HostGit } from './git/host-git.ts';
import { mergeIntoTarget } from './git/merge-branches.ts';
import { featureBranch } from './names.ts';
import { takeOrchestrator } from './state/orchestrator-lock.ts';
import { StateStore } from './state/state-store.ts';

export interface MergeOrder extends FleetSurroundings {
  readonly folder: string;
  readonly feature?: string | undefined;
  readonly target?: string | undefined;
  /** Also when not everything is done. */
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

export interface MergedFleet {
  readonly branch: string;
  readonly target: string;
  /** What the target did not have, a line each. */
  readonly commits: readonly string[];
  /** Of the target, afterwards; undefined when nothing was done. */
  readonly commit: string | undefined;
}

/** The result of a feature into a branch of the user's. Nothing else of ours ever touches one. */
export async function mergeFleet(order: MergeOrder): Promise<MergedFleet> {
  const { git, paths } = await findFleet(order.folder, order.feature, order);
  const store = new StateStore(paths);
  const state = store.require();
  // Nobody may move the feature branch meanwhile.
  using hold = takeOrchestrator(paths);
  const branch = featureBranch(paths.feature);
  const target = order.target ?? state.target_branch ?? undefined;
  if (target === undefined)
    throw new HotcellError('INVALID_REQUEST', 'the feature began on no branch', {
      hint: 'Name one with --target.',
    });
  const open = Object.entries(state.levels).filter(([, { status }]) => status !== 'complete');
  if (open.length > 0 && order.force !== true && order.dryRun !== true)
    throw new HotcellError(
      'INVALID_REQUEST',
      `level ${open[0]?.[0] ?? ''} of ${paths.feature} is not complete`,
      {
        hint: 'hotcell fleet resume goes on; merge --force takes what there is.',
      },
    );
  const range = [`refs/heads/${branch}`, '--not', `refs/heads/${target}`, '--'];
  const log = await git.attempt(['log', '--no-merges', '--format=%h %s', ...range]);
  if (log.code !== 0)
    throw new HotcellError('INVALID_REQUEST', `there is no branch ${target}, or none of the feature`, {
      hint: `git branch --list shows them; ${branch} is that of the feature.`,
    });
  const commits = log.stdout.split('\n').filter((line) => line !== '');
  if (order.dryRun === true || commits.length === 0) return { branch, target, commits, commit: undefined };
  if (order.force !== true) await requireOwnSettings(git, branch, target);
  const merged = await mergeIntoTarget(git, {
    target,
    branch,
    message: `Merge feature ${paths.feature}\n`,
    author: await findAuthor(git, undefined),
  });
  if (merged.kind === 'conflict')
    throw new HotcellError(
      'MERGE_CONFLICT',
      `${branch} does not merge into ${target}: ${merged.files.join(', ')}`,
      {
        hint: `Nothing was changed. By hand: git switch ${target} && git merge ${branch}, resolve, git commit.`,
      },
    );
  store.note('merged_to_target', { target, commit: merged.commit, by: hold.record.pid });
  return { branch, target, commits, commit: lineOf(merged.commit) };
}

/** Files that the next command reads as the user's own wish. */
const SETTINGS = ['hotcell.yaml', '.mahabharatha'];

/**
 * SECURITY: an agent may have changed what decides about its walls. Whoever merges that must know: the next run would obey.
 */
async function requireOwnSettings(git: HostGit, branch: string, target: string): Promise<void> {
  const range = `refs/heads/${target}...refs/heads/${branch}`;
  const changed = splitNul(await git.run(['diff', '--name-only', '-z', range, '--', ...SETTINGS]));
  if (changed.length === 0) return;
  throw new HotcellError(
    'FILE_REFUSED',
    `the feature changes settings of the fleet itself: ${changed.join(', ')}`,
    {
      hint: `Look: git diff ${target}...${branch} -- ${SETTINGS.join(' ')}\nIf that is what you want: hotcell fleet merge --force`,
    },
  );
}
