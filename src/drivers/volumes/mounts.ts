import { setTimeout as sleep } from 'node:timers/promises';
import { HotcellError } from '../../core/errors.ts';
import { runCommand } from '../process/run-command.ts';
import { mountPoints } from './mount-table.ts';

const SLOW_MS = 60_000;
const ATTEMPTS = 50;
const PAUSE_MS = 40;

/**
 * Makes a mount of a folder, so that other mount namespaces see what is mounted below it, and above all what is not any more: a
 * copy that one of them keeps would hold the file system.
 */
export async function share(folder: string): Promise<void> {
  if ((await mountPoints()).has(folder)) return;
  for (const words of [
    ['--bind', folder, folder],
    ['--make-shared', folder],
  ])
    await mount(words);
}

export async function mount(words: readonly string[]): Promise<void> {
  const { code, stderr } = await runCommand(['mount', ...words], { timeoutMs: SLOW_MS });
  if (code === 0) return;
  throw new HotcellError('SESSIONS_UNAVAILABLE', `mount failed: ${stderr.trim()}`, {
    hint: 'Run `hotcell doctor` on the host; it says what bounded file systems need.',
  });
}

export async function unmount(folder: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { code, stderr } = await runCommand(['umount', folder], { timeoutMs: SLOW_MS });
    if (code === 0) return;
    // The kernel takes a moment to forget a cell that has just ended, and to let go of the image of a loop device.
    if (!/busy/.test(stderr) || attempt === ATTEMPTS)
      throw new HotcellError('SESSIONS_UNAVAILABLE', `umount failed: ${stderr.trim()}`);
    await sleep(PAUSE_MS);
  }
}

/**
 * For a folder that is about to go. A program of the user that stands in it is no obstacle: nothing leads there any more, and
 * what was mounted goes when that program does.
 */
export async function detach(folder: string): Promise<void> {
  try {
    await unmount(folder);
  } catch (error) {
    const { code, stderr } = await runCommand(['umount', '--lazy', folder], { timeoutMs: SLOW_MS });
    if (code === 0) return;
    throw new HotcellError('FLEET_GIT', `${folder} could not be unmounted: ${stderr.trim()}`, {
      hint: 'Try again as root, who mounted it.',
      cause: error,
    });
  }
}

export async function detachBelow(folders: readonly string[]): Promise<void> {
  for (const path of await mountsBelow(folders)) await detach(path);
}

/** Of these folders, too. What was mounted last comes first: it may lie upon the others. */
export async function mountsBelow(folders: readonly string[]): Promise<string[]> {
  if (process.platform !== 'linux') return [];
  const isBelow = (path: string): boolean =>
    folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
  return [...(await mountPoints())].filter(isBelow).toReversed();
}
