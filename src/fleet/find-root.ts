import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { HotcellError } from '../core/errors.ts';

const WORKTREES = `${sep}.mahabharatha-worktrees${sep}`;

/** Top of the repository that `folder` is in, without asking git: `status` shall work wherever the files are. */
export function findRepositoryRoot(folder: string): string {
  const start = realpathSync(folder);
  // In the worktree of a worker the repository is meant that it belongs to.
  const cut = start.indexOf(WORKTREES);
  for (let place = cut < 0 ? start : start.slice(0, cut); ; place = dirname(place)) {
    if (existsSync(join(place, '.git'))) return place;
    if (place === dirname(place)) break;
  }
  throw new HotcellError('INVALID_REQUEST', `${folder} is in no git repository`, {
    hint: 'Go to the repository whose feature is meant.',
  });
}
