import { createHash, hash, type Hash } from 'node:crypto';
import { HotcellError } from '../core/errors.ts';
import { commitBatch, type Step } from './batch.ts';
import { isYoung, type FileState } from './file-state.ts';
import type { SyncReport, SyncWish } from './files.ts';
import type { FilesGuest } from './files-guest.ts';
import { getFiles, statFiles } from './look.ts';
import { requireApart, requirePath, requireWritable } from './path-rules.ts';
import { foldersAbove, type SyncIndex } from './synced-files.ts';
import { presentMode, recordSteps } from './write-files.ts';

interface Wanted {
  readonly path: string;
  readonly hash: string;
  readonly content: Uint8Array | undefined;
  /** Undefined: whatever it has. */
  readonly mode: number | undefined;
}

/** Makes the workspace like the client's files, as far as their content is known. */
export async function syncFiles(guest: FilesGuest, request: SyncWish, index: SyncIndex): Promise<SyncReport> {
  for (const [at, { path }] of request.files.entries()) requirePath(path, `files[${at}].path`);
  const wanted = toWanted(request);
  const paths = wanted.map(({ path }) => path);
  requireApart(paths);
  const dropped = request.delete ? namedNoMore(paths, index) : [];
  const { states } = await statFiles(guest, [...paths, ...dropped]);
  const removed = dropped.filter((_, at) => states[paths.length + at]?.kind === 'file');
  requireRoom(wanted, states, new Set(removed));
  const present = await hashChanged(guest, { paths, states }, index);

  const changed = wanted.filter((file, at) => {
    const isSame = present.get(file.path) === file.hash;
    return !isSame || (file.mode !== undefined && file.mode !== ((states[at]?.mode ?? 0) & 0o777));
  });
  // Nothing is removed before all is there to take its place, and what has no room until then waits, too.
  const isWhole = changed.every(({ content }) => content !== undefined);
  const stateOf = new Map(paths.map((path, at) => [path, states[at]]));
  const isReady = ({ path, content }: Wanted): boolean =>
    content !== undefined && (isWhole || isFree(stateOf.get(path)));
  const needed = changed.filter((file) => !isReady(file)).map(({ path }) => path);
  const writes = changed.filter(isReady).flatMap((file) => toWrite(file, stateOf.get(file.path)));
  const removals = isWhole ? toRemovals(removed, index) : [];
  const steps = [...removals, ...writes];
  const results = await commitBatch(guest, steps);

  const isChanged = new Set(changed.map(({ path }) => path));
  for (const { path } of wanted) if (!isChanged.has(path)) index.claim(path);
  if (isWhole) for (const path of dropped) index.forget(path);
  recordSteps(steps, results, index, new Map(wanted.map((file) => [file.path, file.hash])));
  return {
    synced: writes.length,
    skipped: wanted.length - changed.length,
    deleted: isWhole ? removed.length : 0,
    needed,
  };
}

function toWanted({ files }: SyncWish): Wanted[] {
  return files.map(({ path, content, encoding, mode, hash: given }, at) => {
    const bytes = content === undefined ? undefined : Buffer.from(content, encoding);
    const found = bytes === undefined ? given : hash('sha256', bytes, 'hex');
    if (found === undefined || (given !== undefined && given !== found)) {
      throw new HotcellError('INVALID_REQUEST', `the hash of ${path} is not that of its content`, {
        field: `files[${at}].hash`,
      });
    }
    return {
      path,
      hash: found,
      content: bytes,
      mode: typeof mode === 'string' ? Number.parseInt(mode, 8) : mode,
    };
  });
}

function namedNoMore(paths: readonly string[], index: SyncIndex): string[] {
  const named = new Set(paths);
  return [...index.brought()].filter((path) => !named.has(path));
}

/** What stands in the way is refused, unless this very sync removes it: a file may become a folder, and a folder a file. */
function requireRoom(
  wanted: readonly Wanted[],
  states: readonly FileState[],
  removed: ReadonlySet<string>,
): void {
  const foldersOfRemoved = new Set([...removed].flatMap(foldersAbove));
  for (const [at, { path }] of wanted.entries()) {
    const state = states[at];
    if (state === undefined) continue;
    if (state.kind === 'barred' && foldersAbove(path).some((folder) => removed.has(folder))) continue;
    if (state.kind === 'folder' && foldersOfRemoved.has(path)) continue;
    requireWritable(path, state);
  }
}

interface FoundFile {
  readonly state: FileState;
  readonly hash: Hash;
}

/** The hashes of the files that are there. Only those that may have changed since the index saw them are read. */
async function hashChanged(
  guest: FilesGuest,
  seen: { readonly paths: readonly string[]; readonly states: readonly FileState[] },
  index: SyncIndex,
): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  const unknown: string[] = [];
  for (const [at, path] of seen.paths.entries()) {
    const state = seen.states[at];
    if (state?.kind !== 'file') continue;
    const known = index.hashOf(path, state);
    if (known === undefined) unknown.push(path);
    else hashes.set(path, known);
  }
  if (unknown.length === 0) return hashes;
  const found: FoundFile[] = [];
  const clockMs = await getFiles(
    guest,
    { paths: unknown, limitBytes: Number.MAX_SAFE_INTEGER },
    {
      begin: (state) => found.push({ state, hash: createHash('sha256') }),
      piece: (bytes) => found.at(-1)?.hash.update(bytes),
    },
  );
  for (const [at, path] of unknown.entries()) {
    const file = found[at];
    if (file?.state.kind !== 'file') continue;
    const digest = file.hash.digest('hex');
    hashes.set(path, digest);
    const isBrought = index.isBrought(path);
    index.set(path, {
      hash: digest,
      stamp: file.state.stamp,
      isYoung: isYoung(file.state, clockMs),
      isBrought,
    });
  }
  return hashes;
}

function isFree(state: FileState | undefined): boolean {
  return state?.kind === 'file' || state?.kind === 'missing';
}

function toWrite({ path, content, mode }: Wanted, state: FileState | undefined): Step[] {
  if (content === undefined) return [];
  return [{ kind: 'write', path, content, mode: mode ?? presentMode(state) }];
}

/** With the folders that were made for the files, the deepest first, for if nothing else is in them. */
function toRemovals(removed: readonly string[], index: SyncIndex): Step[] {
  const folders = new Set(removed.flatMap(foldersAbove).filter((folder) => index.isMadeFolder(folder)));
  const deepestFirst = [...folders].toSorted((one, other) => other.length - one.length);
  return [
    ...removed.map((path): Step => ({ kind: 'remove', path })),
    ...deepestFirst.map((path): Step => ({ kind: 'prune', path })),
  ];
}
