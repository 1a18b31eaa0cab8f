import { HotcellError } from '../../core/errors.ts';
import type { HostGit } from './host-git.ts';
import { findCommit, moveRef } from './refs.ts';

export interface Rescue {
  readonly feature: string;
  readonly worker: number;
  readonly commit: string;
}

/** Keeps a commit that is on no branch any more from being collected. */
export async function keepCommit(git: HostGit, { feature, worker, commit }: Rescue): Promise<string> {
  const ref = `refs/mahabharatha/${feature}/rescued/worker-${worker}-${commit.slice(0, 12)}`;
  const known = await findCommit(git, ref);
  if (known === commit) return ref;
  if (known !== undefined) throw new HotcellError('FLEET_GIT', `${ref} is something else already`);
  await moveRef(git, { ref, to: commit, from: undefined, why: 'keep what a worker left' });
  return ref;
}
