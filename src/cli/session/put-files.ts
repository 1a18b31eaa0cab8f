import { stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { HttpRunnerClient } from '../../client/http-runner-client.ts';
import { RunnerError } from '../../client/runner-error.ts';
import type { IDEFile } from '../../client/workspace-sync.ts';
import { messageOf } from '../../core/errors.ts';
import { relativePathProblem } from '../../core/job.ts';
import { usageError } from '../exit-codes.ts';
import { SlowNote } from '../slow-note.ts';
import type { Terminal } from '../terminal.ts';
import { collectFiles, toFile } from './collect-files.ts';

type SizedFile = IDEFile & { readonly size: number };

/** About how much goes at once; it grows by a third on the way. */
const BATCH_BYTES = 8 * 1024 * 1024;
const BATCH_FILES = 5000;

export interface PutWish {
  readonly sessionId: string;
  readonly local: string;
  readonly remote: string | undefined;
}

/** Writes a file, or every file of a folder, into the workspace. */
export async function putFiles(
  client: HttpRunnerClient,
  { sessionId, local, remote }: PutWish,
  terminal: Terminal,
): Promise<{ files: number; leftOut: readonly string[] }> {
  const { files, leftOut } = await readLocal(local, remote);
  let done = 0;
  using slow = new SlowNote(terminal);
  slow.tell(() => `sent ${done} of ${files.length} files`);
  for (let batch of toBatches(files)) {
    while (batch.length > 0) {
      const sent = await uploadSome(client, sessionId, batch);
      done += sent;
      batch = batch.slice(sent);
    }
  }
  return { files: done, leftOut };
}

/** As many as the server takes at once. */
async function uploadSome(
  client: HttpRunnerClient,
  sessionId: string,
  files: readonly SizedFile[],
): Promise<number> {
  for (let count = files.length; ; count = Math.ceil(count / 2)) {
    try {
      return await client.upload(sessionId, files.slice(0, count));
    } catch (error) {
      const isTooLarge = error instanceof RunnerError && error.code === 'BODY_TOO_LARGE';
      if (!isTooLarge || count === 1) throw error;
    }
  }
}

async function readLocal(local: string, remote: string | undefined) {
  const found = await stat(local).catch((error: unknown) => {
    throw usageError(`cannot read ${local}: ${messageOf(error)}`, 'Name a file or folder that exists.');
  });
  const name = toRemote(remote?.endsWith('/') === true ? remote + basename(resolve(local)) : remote, local);
  if (!found.isDirectory()) return { files: [await toFile(local, requireName(name))], leftOut: [] };
  const prefix = name === '.' ? '' : `${requireName(name)}/`;
  const { files, leftOut } = await collectFiles(local, new Set());
  return { files: files.map((file) => ({ ...file, path: prefix + file.path })), leftOut };
}

function toRemote(remote: string | undefined, local: string): string {
  const wanted = remote ?? basename(resolve(local));
  return wanted.replace(/^(\.\/)+(?=.)/, '').replace(/(?<=.)\/+$/, '');
}

function requireName(path: string): string {
  const problem = path === '.' ? 'names the workspace itself' : relativePathProblem(path);
  if (problem === undefined) return path;
  throw usageError(`${path}: the path ${problem}`, 'Name a place below the workspace, such as src/main.ts.');
}

function* toBatches(files: readonly SizedFile[]): Generator<readonly SizedFile[]> {
  let batch: SizedFile[] = [];
  let bytes = 0;
  for (const file of files) {
    if (batch.length > 0 && (bytes + file.size > BATCH_BYTES || batch.length >= BATCH_FILES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(file);
    bytes += file.size;
  }
  if (batch.length > 0) yield batch;
}
