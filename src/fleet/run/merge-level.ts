import { HotcellError } from '../../core/errors.ts';
import type { HostGit } from '../git/host-git.ts';
import { describeConflict } from '../git/describe-conflict.ts';
import { mergeInto } from '../git/merge-branches.ts';
import { acceptedRef } from '../git/linked-git.ts';
import { findCommit, requireCommit } from '../git/refs.ts';
import type { Author } from '../git/author.ts';
import { featureBranch } from '../names.ts';
import { listWorkerBranches } from './recover.ts';

export type MergedLevel =
  | { readonly kind: 'merged'; readonly commit: string }
  | {
      readonly kind: 'conflict';
      readonly branch: string;
      readonly files: string[];
      readonly instructions: string[];
    };

/**
 * Merges what the workers have done into the feature branch, one branch after the other. Every step is one move of one ref,
 * and a branch that is in already is passed over: after a crash, or after a person has merged one by hand, it goes on.
 */
export async function mergeLevel(
  git: HostGit,
  { feature, level, author }: { readonly feature: string; readonly level: number; readonly author: Author },
): Promise<MergedLevel> {
  const into = featureBranch(feature);
  for (const { worker, branch } of await listWorkerBranches(git, feature)) {
    // Without walls an agent moves its branch itself; what counts is what was accepted of it.
    const accepted = acceptedRef(feature, worker);
    const merged = await mergeInto(git, {
      ref: into,
      branch: (await findCommit(git, accepted)) === undefined ? branch : accepted,
      message: `Merge ${branch} (level ${level} of ${feature})\n`,
      author,
    });
    if (merged.kind !== 'conflict') continue;
    const { files } = merged;
    return { kind: 'conflict', branch, files, instructions: describeConflict({ feature, branch, files }) };
  }
  return { kind: 'merged', commit: await requireCommit(git, into) };
}

/** Makes the feature branch at the first start. */
export async function ensureFeatureBranch(git: HostGit, feature: string, base: string): Promise<void> {
  const ref = `refs/heads/${featureBranch(feature)}`;
  if ((await findCommit(git, ref)) !== undefined) return;
  const made = await git.attempt(['update-ref', ref, base, '']);
  if (made.code !== 0)
    throw new HotcellError(
      'INVALID_REQUEST',
      `the branch ${featureBranch(feature)} cannot be made: ${made.stderr}`,
      {
        hint: `Is there a branch that is called as a part of it? git branch --list 'mahabharatha*' shows them.`,
      },
    );
}
