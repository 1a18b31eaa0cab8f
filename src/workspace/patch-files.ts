import { applyHunks } from './apply-hunks.ts';
import { MUST_BE_MISSING, commitBatch, type Step } from './batch.ts';
import type { PatchedFile } from './files.ts';
import type { FilesGuest } from './files-guest.ts';
import { parsePatch, patchRefused, type FilePatch } from './patch.ts';
import { requirePath, requirePlainFile, requireWritable } from './path-rules.ts';
import { readFiles, type ReadFile } from './read-path.ts';
import type { SyncIndex } from './synced-files.ts';
import { DEFAULT_MODE, recordSteps } from './write-files.ts';

const LARGEST_FILE = 8 * 1024 * 1024;
const MOST_FILES = 1000;
const STATUSES = { modify: 'applied', create: 'created', delete: 'deleted' } as const;

/** All of the diff, or nothing: also when a file changes between our look at it and the end. */
export async function patchFiles(guest: FilesGuest, diff: string, index?: SyncIndex): Promise<PatchedFile[]> {
  const patches = parsePatch(diff);
  if (patches.length > MOST_FILES) throw patchRefused(`a diff may have at most ${MOST_FILES} files`);
  for (const { path } of patches) requirePath(path, 'diff');
  const files = await readFiles(
    guest,
    patches.map(({ path }) => path),
    LARGEST_FILE,
  );
  const steps = patches.flatMap((patch, at) => {
    const file = files[at];
    return file === undefined ? [] : [toStep(patch, file)];
  });
  const results = await commitBatch(guest, steps, (path) =>
    patchRefused(`${path} was changed at the same time; nothing was changed by this patch`),
  );
  recordSteps(steps, results, index);
  return patches.map(({ path, action }) => ({ path, status: STATUSES[action] }));
}

function toStep(given: FilePatch, { state, content }: ReadFile): Step {
  // A character for each byte, so that lines are compared as they are, in whatever encoding.
  const patch = toByteText(given);
  const { path, action } = patch;
  requireWritable(path, state);
  if (action === 'create') {
    if (state.kind !== 'missing') throw patchRefused(`${path} is to be made, but it is there already`);
    const made = Buffer.from(applyHunks(patch, ''), 'latin1');
    return {
      kind: 'write',
      path,
      content: made,
      mode: patch.mode ?? DEFAULT_MODE,
      expected: MUST_BE_MISSING,
    };
  }
  if (state.kind === 'missing') throw patchRefused(`${path} is to be changed, but it is not there`);
  requirePlainFile(path, state);
  const expected = state.stamp;
  const text = applyHunks(patch, content.toString('latin1'));
  if (action === 'modify') {
    return {
      kind: 'write',
      path,
      content: Buffer.from(text, 'latin1'),
      mode: patch.mode ?? state.mode,
      expected,
    };
  }
  if (text !== '')
    throw patchRefused(`${path} is to be deleted, but it has more in it than the diff removes`);
  return { kind: 'remove', path, expected };
}

function toByteText(patch: FilePatch): FilePatch {
  const hunks = patch.hunks.map((hunk) => ({
    ...hunk,
    lines: hunk.lines.map(({ kind, text }) => ({ kind, text: Buffer.from(text).toString('latin1') })),
  }));
  return { ...patch, hunks };
}
