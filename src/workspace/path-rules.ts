import { HotcellError } from '../core/errors.ts';
import { relativePathProblem } from '../core/job.ts';
import type { FileState } from './file-state.ts';
import { foldersAbove } from './synced-files.ts';

/** Most paths, and a sync has thousands of them. No part begins with a dot, and none is long. */
const USUAL_PATH = /^[\w@+=, -][\w.@+=, -]{0,99}(?:\/[\w@+=, -][\w.@+=, -]{0,99}){0,9}$/;

/** SECURITY: the first line. The second is the guest, which opens one folder after the other and follows no link. */
export function requirePath(path: string, field?: string): void {
  if (USUAL_PATH.test(path)) return;
  const problem = relativePathProblem(path);
  if (problem === undefined && path.isWellFormed()) return;
  const shown = JSON.stringify(path.slice(0, 100));
  throw new HotcellError(
    'FILE_REFUSED',
    `the path ${shown} ${problem ?? 'must be well-formed Unicode'}`,
    field === undefined ? {} : { field },
  );
}

/** No two files have the same path, and none is the folder of another. */
export function requireApart(paths: readonly string[]): void {
  const seen = new Set<string>();
  for (const [index, path] of paths.entries()) {
    if (seen.has(path)) throw conflict(index, `${path} is there twice`);
    seen.add(path);
  }
  const checked = new Set<string>();
  for (const [index, path] of paths.entries()) {
    for (const folder of foldersAbove(path)) {
      if (checked.has(folder)) break;
      checked.add(folder);
      if (seen.has(folder)) throw conflict(index, `${folder} cannot be a file and the folder of ${path}`);
    }
  }
}

function conflict(index: number, message: string): HotcellError {
  return new HotcellError('INVALID_REQUEST', message, { field: `files[${index}].path` });
}

const IN_THE_WAY = {
  folder: 'is a folder',
  link: 'is a link',
  other: 'is neither a file nor a folder',
  barred: 'cannot be reached or read: something on the way to it is no folder, or the rights are missing',
} as const;

/** Only a plain file, or nothing, may stand where a file is to be written. */
export function requireWritable(path: string, { kind }: FileState): void {
  if (kind === 'file' || kind === 'missing') return;
  throw new HotcellError('FILE_REFUSED', `${path} ${IN_THE_WAY[kind]}; nothing was written`);
}

/** As above, for a file to be read. */
export function requirePlainFile(path: string, { kind }: FileState): void {
  if (kind === 'file') return;
  if (kind === 'missing') throw new HotcellError('FILE_NOT_FOUND', `there is no ${path}`);
  throw new HotcellError('FILE_REFUSED', `${path} ${IN_THE_WAY[kind]}`);
}
