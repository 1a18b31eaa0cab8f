import { isUtf8 } from 'node:buffer';
import { HotcellError } from '../core/errors.ts';
import type { FileKind, FileState } from './file-state.ts';
import type { PathContent } from './files.ts';
import type { FilesGuest } from './files-guest.ts';
import { aboutPath } from './guest-refusal.ts';
import { getFiles, receiveFolders } from './look.ts';
import { requirePath, requirePlainFile } from './path-rules.ts';

const MOST_ENTRIES = 10_000;
type Entry = Extract<PathContent, { kind: 'folder' }>['entries'][number];

/** A file with its content, or a folder with its entries. `.` is the workspace itself. */
export async function readPath(guest: FilesGuest, path: string, limitBytes: number): Promise<PathContent> {
  if (path === '.') return listFolder(guest, path);
  requirePath(path, 'path');
  const { state, content } = await readFile(guest, path, limitBytes);
  if (state.kind === 'folder') return listFolder(guest, path);
  requirePlainFile(path, state);
  const isText = isUtf8(content) && !content.includes(0);
  return {
    kind: 'file',
    path,
    content: content.toString(isText ? 'utf8' : 'base64'),
    encoding: isText ? 'utf8' : 'base64',
    size: content.length,
    mode: state.mode,
  };
}

export interface ReadFile {
  readonly state: FileState;
  readonly content: Buffer;
}

/** Refuses what is larger than the limit; whether it is a file at all is for the caller to see. */
async function readFile(guest: FilesGuest, path: string, limitBytes: number): Promise<ReadFile> {
  const [file] = await readFiles(guest, [path], limitBytes);
  if (file === undefined) throw new HotcellError('FILE_NOT_FOUND', `there is no ${path}`);
  return file;
}

/** In the order of the paths. */
export async function readFiles(
  guest: FilesGuest,
  paths: readonly string[],
  limitBytes: number,
): Promise<ReadFile[]> {
  const found: { readonly state: FileState; readonly pieces: Buffer[] }[] = [];
  await getFiles(
    guest,
    { paths, limitBytes },
    {
      begin: (state) => found.push({ state, pieces: [] }),
      piece: (bytes) => found.at(-1)?.pieces.push(bytes),
    },
  );
  return found.map(({ state, pieces }, at) => {
    if (state.kind === 'file' && state.size > limitBytes) {
      const message = `${paths[at]} has ${state.size} bytes, and ${limitBytes} can be read`;
      throw new HotcellError('FILE_TOO_LARGE', message);
    }
    return { state, content: Buffer.concat(pieces) };
  });
}

async function listFolder(guest: FilesGuest, path: string): Promise<PathContent> {
  const limit = Buffer.alloc(4);
  limit.writeUInt32BE(MOST_ENTRIES);
  const entries: Entry[] = [];
  const work = guest.run(async (turn) => {
    turn.send('L', Buffer.concat([limit, Buffer.from(path === '.' ? '' : path)]));
    for await (const part of receiveFolders(turn)) {
      for (const { name, state } of part.entries) {
        const kind = toEntryKind(state.kind);
        if (kind !== undefined)
          entries.push({ name: name.toString(), kind, size: state.size, mode: state.mode });
      }
      if (entries.length > MOST_ENTRIES) throw turn.nonsense();
    }
  });
  await aboutPath(path === '.' ? 'the workspace' : path, work);
  return {
    kind: 'folder',
    path,
    entries: entries.toSorted((one, other) => (one.name < other.name ? -1 : 1)),
  };
}

/** Undefined for what is gone again since its name was read. */
function toEntryKind(kind: FileKind): Entry['kind'] | undefined {
  if (kind === 'missing') return undefined;
  return kind === 'barred' ? 'other' : kind;
}
