import { hash } from 'node:crypto';
import type { CellFile } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import { commitBatch, type Step, type StepResult } from './batch.ts';
import type { FileState } from './file-state.ts';
import type { FilesGuest } from './files-guest.ts';
import { statFiles } from './look.ts';
import { requireApart, requirePath, requirePlainFile, requireWritable } from './path-rules.ts';
import type { SyncIndex } from './synced-files.ts';

export const DEFAULT_MODE = 0o644;

/** Whoever writes over a file without a word about its mode leaves it as it is. */
export function presentMode(state: FileState | undefined): number {
  return state?.kind === 'file' ? state.mode & 0o777 : DEFAULT_MODE;
}

/** All of the files, or none; the folders above them are made. */
export async function writeFiles(
  guest: FilesGuest,
  files: readonly CellFile[],
  index?: SyncIndex,
): Promise<void> {
  for (const [at, { path }] of files.entries()) requirePath(path, `files[${at}].path`);
  requireApart(files.map(({ path }) => path));
  // Refused before anything is sent. The guest checks again when it writes.
  const { states } = await statFiles(
    guest,
    files.map(({ path }) => path),
  );
  for (const [at, state] of states.entries()) requireWritable(files[at]?.path ?? '', state);
  const steps = files.map(({ path, content, mode }, at): Step => ({
    kind: 'write',
    path,
    content,
    mode: mode ?? presentMode(states[at]),
  }));
  recordSteps(steps, await commitBatch(guest, steps), index);
}

export async function removeFiles(
  guest: FilesGuest,
  paths: readonly string[],
  index?: SyncIndex,
): Promise<void> {
  for (const [at, path] of paths.entries()) requirePath(path, `paths[${at}]`);
  if (new Set(paths).size < paths.length) {
    throw new HotcellError('INVALID_REQUEST', 'a path is there twice', { field: 'paths' });
  }
  const { states } = await statFiles(guest, paths);
  for (const [at, state] of states.entries()) requirePlainFile(paths[at] ?? '', state);
  const steps = paths.map((path): Step => ({ kind: 'remove', path }));
  recordSteps(steps, await commitBatch(guest, steps), index);
}

/** Notes what was done. `hashes` are those that are known already. */
export function recordSteps(
  steps: readonly Step[],
  results: readonly StepResult[],
  index: SyncIndex | undefined,
  hashes: ReadonlyMap<string, string> = new Map(),
): void {
  if (index === undefined) return;
  for (const [at, step] of steps.entries()) {
    const result = results[at];
    if (result === undefined) continue;
    if (step.kind === 'write') {
      index.set(step.path, {
        hash: hashes.get(step.path) ?? hash('sha256', step.content, 'hex'),
        stamp: result.state.stamp,
        // It has just been made, so it is as young as can be.
        isYoung: true,
        isBrought: true,
      });
      index.addFolders(step.path, result.count);
    } else if (step.kind === 'remove' || result.count === 1) {
      index.forget(step.path);
    }
  }
}
