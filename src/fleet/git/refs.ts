import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError } from '../../core/errors.ts';
import { gitFailed, lineOf, type HostGit } from './host-git.ts';

const COMMIT_ID = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;
/** Refs that nobody but us moves. */
const OURS = /^refs\/(?:heads\/)?mahabharatha\//;
/** Git holds a lock for moments; what is older was left by a crash. */
const STALE_LOCK_MS = 3000;

/** SECURITY: a hash that came out of a cell is checked here before it becomes an argument. */
export function requireCommitId(text: string): string {
  const id = text.trim();
  if (COMMIT_ID.test(id)) return id;
  throw new HotcellError('FLEET_GIT', `${JSON.stringify(id.slice(0, 100))} is not the name of a commit`);
}

export function toRef(branch: string): string {
  return branch.startsWith('refs/') ? branch : `refs/heads/${branch}`;
}

/** The commit that a branch, ref or hash stands for. */
export async function findCommit(git: HostGit, name: string): Promise<string | undefined> {
  const ref = COMMIT_ID.test(name) ? name : toRef(name);
  const result = await git.attempt([
    'rev-parse',
    '--verify',
    '--quiet',
    '--end-of-options',
    `${ref}^{commit}`,
  ]);
  return result.code === 0 ? requireCommitId(lineOf(result.stdout)) : undefined;
}

export async function requireCommit(git: HostGit, name: string): Promise<string> {
  const commit = await findCommit(git, name);
  if (commit !== undefined) return commit;
  throw new HotcellError('FLEET_GIT', `the repository has no commit or branch ${name}`);
}

/** Branches, refs or hashes. What the repository does not have is in nothing. */
export async function isAncestor(git: HostGit, ancestor: string, descendant: string): Promise<boolean> {
  const [one, other] = await Promise.all([findCommit(git, ancestor), findCommit(git, descendant)]);
  if (one === undefined || other === undefined) return false;
  const args = ['merge-base', '--is-ancestor', one, other];
  const result = await git.attempt(args);
  if (result.code > 1) throw gitFailed(args, result);
  return result.code === 0;
}

export interface RefMove {
  readonly ref: string;
  readonly to: string;
  /** Where it must be now; undefined: it must not be there. */
  readonly from: string | undefined;
  readonly why: string;
}

/** All or nothing: fails if the ref is not where it was thought to be. */
export async function moveRef(git: HostGit, { ref, to, from, why }: RefMove): Promise<void> {
  const old = from ?? '0'.repeat(to.length);
  const args = ['update-ref', '--create-reflog', '-m', `mahabharatha: ${why}`, ref, to, old];
  for (;;) {
    const result = await git.attempt(args);
    if (result.code === 0) return;
    const lock = await findLock(git, ref);
    if (lock === undefined) throw gitFailed(args, result);
    if (lock.ageMs >= STALE_LOCK_MS) await rm(lock.path, { force: true });
    else await sleep(STALE_LOCK_MS - lock.ageMs);
  }
}

export async function deleteRef(git: HostGit, ref: string): Promise<void> {
  await git.run(['update-ref', '-d', ref]);
}

/** Only of refs of ours: a lock on any other may be somebody's at work. */
async function findLock(git: HostGit, ref: string): Promise<{ path: string; ageMs: number } | undefined> {
  if (!OURS.test(ref)) return undefined;
  const path = join(git.commonDir, `${ref}.lock`);
  const made = await stat(path).catch(() => undefined);
  return made === undefined ? undefined : { path, ageMs: Math.max(0, Date.now() - made.mtimeMs) };
}
