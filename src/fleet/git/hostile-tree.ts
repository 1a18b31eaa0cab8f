import { lstat, readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import type { CellOwner } from '../../core/cell.ts';
import type { HostGit } from './host-git.ts';
import { runProgram } from './run-program.ts';

const TIMEOUT_MS = 30 * 60_000;
const MEASURE_MS = 5 * 60_000;

/**
 * SECURITY: the programs of the system walk by file descriptor and never through links, and neither odd names nor paths
 * deeper than the system allows stop them; a walk by path strings would fail at all three.
 */
export async function removeTree(git: HostGit, path: string): Promise<void> {
  if (!(await exists(path))) return;
  const first = await runTool(git, ['rm', '-rf', '--', path]);
  if (first.code === 0) return;
  // Folders that their owner may not write to.
  await runTool(git, ['chmod', '-R', 'u+rwX', '--', path]);
  const second = await runTool(git, ['rm', '-rf', '--', path]);
  if (second.code === 0 || (await isBareMount(path))) return;
  throw new HotcellError('FLEET_GIT', `${path} could not be removed: ${second.stderr.trim().slice(0, 500)}`, {
    hint: 'Remove it by hand.',
  });
}

/** Of such a tree nothing but its root is left, which cannot be removed while it is mounted. */
async function isBareMount(path: string): Promise<boolean> {
  const [own, above] = await Promise.all([lstat(path), lstat(dirname(path))]);
  return own.isDirectory() && own.dev !== above.dev && (await readdir(path)).length === 0;
}

/** Links are given themselves, never what they lead to. */
export async function giveTree(git: HostGit, path: string, owner: CellOwner): Promise<void> {
  const { code, stderr } = await runTool(git, ['chown', '-Rh', '--', `${owner.uid}:${owner.gid}`, path]);
  if (code === 0) return;
  throw new HotcellError(
    'FLEET_GIT',
    `${path} could not be given to the worker: ${stderr.trim().slice(0, 500)}`,
  );
}

/**
 * What a folder takes on the disk, or as much of it as we may see; undefined when nobody can tell in good time. Programs may
 * change it meanwhile, in any way.
 */
export async function measureTree(git: HostGit, path: string): Promise<number | undefined> {
  const result = await runTool(git, ['du', '-s', '-k', '-x', '--', path], MEASURE_MS).catch(() => undefined);
  if (result === undefined || result.ended !== undefined) return undefined;
  // It also complains when a file is gone before its turn.
  const [kibibytes] = /^\d+(?=\t)/.exec(result.stdout.toString()) ?? [];
  return Number(kibibytes ?? 0) * 1024;
}

/** Also of a link that leads nowhere. */
export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}

function runTool(
  git: HostGit,
  argv: readonly [string, ...string[]],
  timeoutMs = TIMEOUT_MS,
): ReturnType<typeof runProgram> {
  return runProgram(argv, {
    cwd: git.root,
    env: { ...git.env, LC_ALL: 'C' },
    limitBytes: 1024 ** 2,
    timeoutMs,
  });
}
