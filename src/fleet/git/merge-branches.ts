import { HotcellError } from '../../core/errors.ts';
import { toAuthorVariables, type Author } from './author.ts';
import { findFilesInTheWay, type Advance } from './files-in-the-way.ts';
import { gitFailed, type HostGit, type Settings } from './host-git.ts';
import { isAncestor, moveRef, requireCommit, toRef } from './refs.ts';
import { findCheckout, findNames } from './worktrees.ts';

/** Of those in the way; a message is no list. */
const FILES_NAMED = 20;

export interface Merge {
  /** The branch that is moved, by its name or as a whole ref. */
  readonly ref: string;
  /** What goes into it: a branch, a ref or a commit. */
  readonly branch: string;
  readonly message: string;
  readonly author: Author;
}

export type Merged =
  | { readonly kind: 'merged' | 'up-to-date'; readonly commit: string }
  | {
      readonly kind: 'conflict';
      readonly files: string[];
      /** In the words of git. */
      readonly message: string;
    };

/**
 * Merges without any working tree. The only thing that changes is the ref, in one step: whoever dies on the way merges
 * again, and what is in already is passed over.
 */
export async function mergeInto(git: HostGit, merge: Merge): Promise<Merged> {
  const ref = toRef(merge.ref);
  const checkout = await findCheckout(git, ref);
  if (checkout !== undefined)
    throw new HotcellError('FLEET_GIT', `${ref.slice('refs/heads/'.length)} is checked out in ${checkout}`, {
      hint: `It would be moved away under that working tree. Leave it: git -C ${quoteWord(checkout)} switch --detach`,
    });
  const planned = await planMerge(git, merge);
  if (planned.kind === 'merged')
    await moveRef(git, { ref, to: planned.commit, from: planned.from, why: `merge ${merge.branch}` });
  return planned.kind === 'merged' ? { kind: 'merged', commit: planned.commit } : planned;
}

export interface TargetMerge extends Omit<Merge, 'ref'> {
  readonly target: string;
}

/**
 * As `mergeInto`, for a branch that people work on: where it is checked out, files and index follow. What the user has
 * changed stays as it is, or nothing is merged; a conflict is found before anything is touched.
 */
export async function mergeIntoTarget(git: HostGit, { target, ...merge }: TargetMerge): Promise<Merged> {
  const checkout = await findCheckout(git, target);
  if (checkout === undefined) return mergeInto(git, { ref: target, ...merge });
  await requireNoMerge(git, target, checkout);
  const planned = await planMerge(git, { ref: target, ...merge });
  if (planned.kind !== 'merged') return planned;
  await requireRoom(git, { target, checkout, from: planned.from, to: planned.commit });
  // Git looks once more, at the moment at which it writes.
  const args = [
    'merge',
    '--ff-only',
    '--no-squash',
    '--no-autostash',
    '--no-overwrite-ignore',
    '--no-verify-signatures',
    '--no-stat',
    '--quiet',
    planned.commit,
  ];
  const moved = await git.attempt(args, { cwd: checkout });
  if (moved.code === 0) return { kind: 'merged', commit: planned.commit };
  throw new HotcellError('FLEET_GIT', gitFailed(args, moved).message, {
    hint: `Nothing was merged. Files in ${checkout} are in the way, or the branch was moved meanwhile.`,
  });
}

type PlannedMerge =
  | { readonly kind: 'merged'; readonly commit: string; readonly from: string }
  | Exclude<Merged, { kind: 'merged' | 'up-to-date' }>
  | { readonly kind: 'up-to-date'; readonly commit: string };

/** Makes the commit; no ref leads to it yet. */
async function planMerge(git: HostGit, { ref, branch, message, author }: Merge): Promise<PlannedMerge> {
  const ours = await requireCommit(git, ref);
  const theirs = await requireCommit(git, branch);
  if (await isAncestor(git, theirs, ours)) return { kind: 'up-to-date', commit: ours };
  const args = ['merge-tree', '--write-tree', '-z', '--name-only', ours, theirs];
  const result = await git.attempt(args, { settings: await withoutDrivers(git) });
  if (result.code > 1) throw gitFailed(args, result);
  const [tree = '', ...rest] = result.stdout.split('\0');
  if (result.code === 1) return toConflict(rest);
  const commit = await git.run(['commit-tree', '-p', ours, '-p', theirs, '-F', '-', tree], {
    input: message,
    env: toAuthorVariables(author),
  });
  return { kind: 'merged', commit, from: ours };
}

/**
 * SECURITY: programs that the user has for merges of certain files would get files of workers to work on. They fail
 * instead, which is a conflict, and a person decides.
 */
async function withoutDrivers(git: HostGit): Promise<Settings> {
  const names = await findNames(git, 'merge');
  return Object.fromEntries(names.map((name) => [`merge.${name}.driver`, 'false']));
}

/** Names up to an empty one; then, for each message, the number of its paths, the paths, its kind and its text. */
function toConflict(fields: readonly string[]): Merged & { kind: 'conflict' } {
  const end = fields.indexOf('');
  const files = [...new Set(fields.slice(0, end))];
  const messages: string[] = [];
  for (let at = end + 1; at < fields.length;) {
    const paths = Number(fields[at]);
    if (fields[at] === '' || !Number.isInteger(paths)) break;
    const [kind = '', text = ''] = fields.slice(at + 1 + paths, at + 3 + paths);
    if (kind.startsWith('CONFLICT')) messages.push(text.trim());
    at += 3 + paths;
  }
  return { kind: 'conflict', files, message: messages.join('\n') };
}

async function requireNoMerge(git: HostGit, target: string, checkout: string): Promise<void> {
  const merging = await git.attempt(['rev-parse', '--verify', '--quiet', 'MERGE_HEAD'], { cwd: checkout });
  if (merging.code !== 0) return;
  throw new HotcellError(
    'INVALID_REQUEST',
    `${target} is checked out in ${checkout}, in the middle of a merge`,
    { hint: 'Finish it (git commit), or give it up (git merge --abort). Nothing was merged.' },
  );
}

async function requireRoom(
  git: HostGit,
  { target, ...advance }: Advance & { readonly target: string },
): Promise<void> {
  const files = await findFilesInTheWay(git, advance);
  if (files.length === 0) return;
  const more = files.length > FILES_NAMED ? ` and ${files.length - FILES_NAMED} more` : '';
  throw new HotcellError(
    'INVALID_REQUEST',
    `${target} is checked out in ${advance.checkout}, where the merge would change files of yours: ${files.slice(0, FILES_NAMED).join(', ')}${more}`,
    { hint: 'Commit, stash or move these files; others may stay. Nothing was merged.' },
  );
}

function quoteWord(text: string): string {
  return /^[\w./@%+=:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
