import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { toTar } from '../../lib/tar-archive.ts';
import type { Author } from './author.ts';
import { requireInCell, type RunInCell } from './cell-git.ts';

/** Where a cell sees its git folder and the objects of the base store. */
export interface PrivateGitPlan {
  readonly git: string;
  readonly objects: string;
  readonly branch: string;
  readonly author: Author;
  /** Of `git rev-parse --show-object-format`. */
  readonly format: string;
  readonly shallow: Uint8Array | undefined;
  /** What the user's repository ignores beside its `.gitignore` files: or it would be committed here. */
  readonly exclude: Uint8Array;
}

/**
 * All that makes a folder a git folder. It is written as files, so that the host never runs git in a folder that a cell
 * could have written to.
 */
function toPrivateFiles(plan: PrivateGitPlan): Readonly<Record<string, Uint8Array>> {
  const isPlain = plan.format === 'sha1';
  const config = [
    '[core]',
    `\trepositoryformatversion = ${isPlain ? 0 : 1}`,
    '\tfilemode = true',
    '\tbare = false',
    '\tlogallrefupdates = true',
    ...(isPlain ? [] : ['[extensions]', `\tobjectformat = ${plan.format}`]),
    '[gc]',
    '\tauto = 0',
    '[maintenance]',
    '\tauto = false',
    '[commit]',
    '\tgpgsign = false',
    '[user]',
    `\tname = ${quote(plan.author.name)}`,
    `\temail = ${quote(plan.author.email)}`,
    '',
  ];
  const text = (content: string): Uint8Array => Buffer.from(content);
  return {
    HEAD: text(`ref: refs/heads/${plan.branch}\n`),
    config: text(config.join('\n')),
    'objects/info/alternates': text(`${plan.objects}\n`),
    'info/exclude': plan.exclude,
    ...(plan.shallow === undefined ? {} : { shallow: plan.shallow }),
  };
}

/** Precondition: the folder is new. */
export async function writePrivateGit(folder: string, plan: PrivateGitPlan): Promise<void> {
  await mkdir(join(folder, 'refs/heads'), { recursive: true });
  for (const [path, content] of Object.entries(toPrivateFiles(plan))) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
}

/** The same from inside, over a folder that is in use. What the cell has put there instead of our files is removed. */
export async function restorePrivateGit(run: RunInCell, plan: PrivateGitPlan): Promise<void> {
  const files = toPrivateFiles(plan);
  const at = (path: string): string => join(plan.git, path);
  const old = [...Object.keys(files), ...UNWANTED, ...LOCKS, `refs/heads/${plan.branch}.lock`];
  await requireInCell(run, ['rm', '-rf', '--', ...old.map(at)]);
  await requireInCell(run, ['mkdir', '-p', '--', at('refs/heads')]);
  await extract(run, plan, files);
}

async function extract(
  run: RunInCell,
  plan: PrivateGitPlan,
  files: Readonly<Record<string, Uint8Array>>,
): Promise<void> {
  const entries = Object.entries(files).map(([path, content]) => ({ path, content, mode: 0o644 }));
  await requireInCell(run, ['tar', '-x', '-f', '-', '-C', plan.git], { input: toTar(entries) });
}

/**
 * Before our own commit: branches, index and commits of the agent stay.
 * SECURITY: with a filter of the agent's, the commit would hold something else than what was verified; and so would those of
 * the next tasks of this worker.
 */
export async function restoreSettings(run: RunInCell, plan: PrivateGitPlan): Promise<void> {
  const { HEAD: _head, ...files } = toPrivateFiles(plan);
  const old = [...Object.keys(files), ...SETTINGS, ...LOCKS];
  await requireInCell(run, ['rm', '-rf', '--', ...old.map((path) => join(plan.git, path))]);
  await extract(run, plan, files);
}

/** Nothing of the folder is used any more. The folder itself stays: it is mounted. */
export async function remakePrivateGit(run: RunInCell, plan: PrivateGitPlan): Promise<void> {
  await run(['chmod', '-R', 'u+rwX', '--', plan.git]);
  await requireInCell(run, ['find', plan.git, '-mindepth', '1', '-delete']);
  await restorePrivateGit(run, plan);
}

/** What changes the meaning of commands. */
const SETTINGS = ['shallow', 'hooks', 'info', 'commondir', 'config.worktree', 'refs/replace'];
/** The index too: it can hide changes of files. */
const UNWANTED = [
  ...SETTINGS,
  'index',
  'refs/bisect',
  'rebase-merge',
  'rebase-apply',
  'sequencer',
  'MERGE_HEAD',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
];
export const LOCKS: readonly string[] = [
  'index.lock',
  'HEAD.lock',
  'config.lock',
  'packed-refs.lock',
  'shallow.lock',
];

function quote(value: string): string {
  const escaped = value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll(/[\n\r\t]/g, ' ');
  return `"${escaped}"`;
}
