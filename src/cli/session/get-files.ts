import { chmod, lstat, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { HttpRunnerClient } from '../../client/http-runner-client.ts';
import { RunnerError } from '../../client/runner-error.ts';
import { messageOf } from '../../core/errors.ts';
import { toSizeText } from '../../lib/size-text.ts';
import { ArchiveRefusal } from '../../workspace/archive-refusal.ts';
import { toParts } from '../../workspace/archive-place.ts';
import { extractArchive, SINGLE_FILE, type Extracted } from '../../workspace/extract-archive.ts';
import { usageError } from '../exit-codes.ts';
import { SlowNote } from '../slow-note.ts';
import type { Terminal } from '../terminal.ts';

const MiB = 1024 * 1024;

export interface GetWish {
  readonly sessionId: string;
  readonly remote: string;
  readonly local: string | undefined;
  readonly force: boolean;
  readonly mostBytes: number | undefined;
}

export interface Got extends Omit<Extracted, 'root'> {
  readonly local: string;
}

/** Brings a file or a folder of the workspace here. All of it is here or nothing. */
export async function getFiles(
  client: HttpRunnerClient,
  wish: GetWish,
  { terminal, signal }: { readonly terminal: Terminal; readonly signal: AbortSignal },
): Promise<Got> {
  const below = toParts(new TextEncoder().encode(wish.remote));
  if (below === undefined) {
    throw usageError(
      `${wish.remote} is no path below the workspace`,
      'Name it as src/main.ts, or . for everything.',
    );
  }
  const { project_id: project, limits } = await client.getSession(wish.sessionId);
  const target = await toTarget(wish.local, below.at(-1) ?? project);
  // Beside the target, so that it can be moved there at once, and closed to others until then.
  const folder = await mkdtemp(join(dirname(target), '.hotcell-get-')).catch((error: unknown) => {
    throw usageError(
      `cannot write to ${dirname(target)}: ${messageOf(error)}`,
      'Name a place where you may write.',
    );
  });
  let progress = { files: 0, bytes: 0 };
  using slow = new SlowNote(terminal);
  slow.tell(() => `got ${progress.files} files, ${toSizeText(progress.bytes)}`);
  try {
    const archive = await client.downloadArchive(wish.sessionId, { signal });
    const extracted = await extractArchive(archive, {
      into: folder,
      below,
      mostBytes: wish.mostBytes ?? limits.disk_mb * MiB,
      onItem: (done) => {
        progress = done;
      },
    });
    await moveTo(target, { folder, extracted, force: wish.force, remote: wish.remote });
    const { root: _root, ...rest } = extracted;
    return { ...rest, local: target };
  } catch (error) {
    throw error instanceof ArchiveRefusal ? toRunnerError(error) : error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function toRunnerError({ code, message }: ArchiveRefusal): RunnerError {
  const isTooLarge = code === 'FILE_TOO_LARGE';
  return new RunnerError(
    code,
    isTooLarge ? message : `the archive of the session is not usable: ${message}`,
    {
      hint: isTooLarge
        ? 'Allow more with --most-bytes if there is room for it here. Nothing was written.'
        : 'Nothing was written. Try again, or get single files.',
    },
  );
}

/** Into a folder that is there, otherwise under the very name. */
async function toTarget(local: string | undefined, name: string): Promise<string> {
  if (local === undefined) return resolve(name);
  const isFolder = await stat(local).then(
    (found) => found.isDirectory(),
    () => local.endsWith('/'),
  );
  return isFolder && (await hasEntries(local)) ? resolve(local, name) : resolve(local);
}

async function hasEntries(folder: string): Promise<boolean> {
  return readdir(folder).then(
    (names) => names.length > 0,
    () => false,
  );
}

interface Moving {
  readonly folder: string;
  readonly extracted: Extracted;
  readonly force: boolean;
  readonly remote: string;
}

async function moveTo(target: string, { folder, extracted, force, remote }: Moving): Promise<void> {
  if (extracted.root === 'missing') {
    throw new RunnerError('FILE_NOT_FOUND', `there is no ${remote} in the workspace`, {
      hint: 'hotcell session exec SESSION ls shows what there is.',
    });
  }
  const there = await lstat(target).catch(() => undefined);
  const isFile = extracted.root === 'file';
  // An empty folder may be filled; everything else is somebody's.
  const isFree = there === undefined || (!isFile && there.isDirectory() && !(await hasEntries(target)));
  if (!isFree && !(force && isFile && !there.isDirectory())) {
    const hint =
      isFile && !there.isDirectory() ? 'Add --force to replace it.' : 'Name another place, or remove it.';
    throw usageError(`${basename(target)} is already there`, hint);
  }
  if (isFile) await rename(join(folder, SINGLE_FILE), target);
  else {
    await chmod(folder, 0o755);
    await rename(folder, target);
  }
}
