import { open, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { BaseStore } from './base-store.ts';
import type { GitOptions, HostGit } from './host-git.ts';
import { requireCommitId } from './refs.ts';

/** Bounds for what one cell can make the host store, unpack and look at. */
export const PACK_BYTES = 1024 ** 3;
const UNPACKED_BYTES = 4 * 1024 ** 3;
/** Of all names, with their folders, how much longer they may be together. */
const NEW_NAMES_BYTES = 8 * 1024 ** 2;
const RAW_BYTES = 1024 ** 3;
/** The largest piece of memory that git may ask for while it reads what came: a few bytes can claim to be gigabytes. */
const ALLOCATION = '512m';
/** As git does on a push: few objects go into files of their own, many stay in a pack. */
const UNPACK_LIMIT = 100;
const INDEX_PACK = [
  'index-pack',
  '--stdin',
  '--strict',
  '--fix-thin',
  '--threads=1',
  `--max-input-size=${PACK_BYTES}`,
];

export interface Arrival {
  readonly git: HostGit;
  readonly base: BaseStore;
  /** A folder of the host alone; what is in it is removed. */
  readonly scratch: string;
  /** In `scratch`: everything of `commit` that the base store does not have. */
  readonly pack: string;
  readonly commit: string;
  /** The commit that `commit` must continue. Undefined: whatever it is. */
  readonly continues: string | undefined;
  /** What `files` are compared with. */
  readonly since: string;
  /** The last word, before anything is stored: throws to refuse. */
  readonly accept?: ((files: string[]) => void) | undefined;
}

/**
 * Takes a pack that a cell has written into the user's repository.
 * SECURITY: nothing reaches the repository before all of it was checked beside it, with no more than the base store at hand:
 * so a commit can name nothing of the repository that its cell could not see.
 */
export async function takeIn(arrival: Arrival): Promise<string[]> {
  const incoming = join(arrival.scratch, 'incoming');
  await rm(incoming, { recursive: true, force: true });
  await mkdir(join(incoming, 'pack'), { recursive: true });
  try {
    const files = await inspect(arrival, incoming);
    arrival.accept?.(files);
    await store(arrival);
    return files;
  } finally {
    await rm(incoming, { recursive: true, force: true });
  }
}

async function inspect(
  { git, base, pack, commit, continues, since }: Arrival,
  incoming: string,
): Promise<string[]> {
  const here = base.withIncoming(incoming);
  const place = { ...here, env: { ...here.env, GIT_ALLOC_LIMIT: ALLOCATION } };
  try {
    await git.run(INDEX_PACK, { ...place, inputFile: pack });
    const kind = await git.run(['cat-file', '-t', requireCommitId(commit)], place);
    if (kind !== 'commit') throw new Error(`${commit} is a ${kind}`);
    // Everything that the new commits lead to must be there. Shows nothing.
    const input = `${commit}\n^${await base.commit()}\n`;
    await git.run(['rev-list', '--objects', '--quiet', '--stdin'], { ...place, input });
  } catch (error) {
    throw refused(`what it sent is not accepted: ${messageOf(error)}`, error);
  }
  if (continues !== undefined) {
    const { code } = await git.attempt(['merge-base', '--is-ancestor', continues, commit], place);
    if (code !== 0)
      throw refused(`its commit ${commit} does not continue ${continues}: history was rewritten`);
  }
  await requireFewNames(git, place, { since, commit });
  return changedFiles(git, place, { since, commit });
}

interface Range {
  readonly since: string;
  readonly commit: string;
}

/**
 * SECURITY: a few small trees can stand for billions of files. Git lists the names of one commit as it goes, and can be
 * stopped; it compares two only when it has all of them in memory.
 */
async function requireFewNames(git: HostGit, place: GitOptions, { since, commit }: Range): Promise<void> {
  const list = ['ls-tree', '-r', '-z', '--name-only'];
  const before = await git.count([...list, since], { ...place, limitBytes: Number.MAX_SAFE_INTEGER });
  await git
    .count([...list, commit], { ...place, limitBytes: before + NEW_NAMES_BYTES })
    .catch((error: unknown) => {
      throw refused('its commits have too many files', error);
    });
}

/** SECURITY: counted as a checkout would write them, the same content as often as it is named. */
async function changedFiles(git: HostGit, place: GitOptions, { since, commit }: Range): Promise<string[]> {
  const raw = await git.run(
    ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--no-abbrev', since, commit],
    { ...place, limitBytes: RAW_BYTES },
  );
  const fields = raw.split('\0');
  const files: string[] = [];
  const blobs: string[] = [];
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [, mode = '', , id = ''] = (fields[at] ?? '').split(' ');
    files.push(fields[at + 1] ?? '');
    if (mode.startsWith('100') || mode.startsWith('120')) blobs.push(id);
  }
  const sizes = await git.run(['cat-file', '--batch-check=%(objectsize)'], {
    ...place,
    input: blobs.map((id) => `${id}\n`).join(''),
  });
  const total = sizes.split('\n').reduce((sum, size) => sum + Number(size), 0);
  if (!(total <= UNPACKED_BYTES)) throw refused('its commits hold too much');
  return files;
}

/** SECURITY: strict once more, for this is the call that writes. */
async function store({ git, pack }: Arrival): Promise<void> {
  const program =
    (await countObjects(pack)) < UNPACK_LIMIT
      ? ['unpack-objects', '-q', '--strict', `--max-input-size=${PACK_BYTES}`]
      : INDEX_PACK;
  await git.run(program, { inputFile: pack, cwd: git.commonDir, env: { GIT_ALLOC_LIMIT: ALLOCATION } });
}

/** From the header of the pack. */
async function countObjects(pack: string): Promise<number> {
  await using file = await open(pack, 'r');
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(12) });
  return bytesRead === 12 ? buffer.readUInt32BE(8) : 0;
}

function refused(why: string, cause?: unknown): HotcellError {
  return new HotcellError('FLEET_GIT', `commits of the worker were refused: ${why}`, {
    hint: 'Nothing of them is in the repository. The task can be tried again from the last commit that was accepted.',
    cause,
  });
}
