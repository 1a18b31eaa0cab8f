import { joinBytes } from './join-bytes.ts';
import { TAR_END, toPadding, toTarHeader, type TarMember } from './tar-member.ts';

export interface TarEntry {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
}

const FOLDER_MODE = 0o755;
/** Always the same, so that the same files make the same archive. Not 0: some programs warn of files from 1970. */
const MODIFIED = Date.UTC(2024, 0, 1) / 1000;

const utf8 = new TextEncoder();

/** An archive of files that belong to root. The folders on the way are in it too, each before what it holds. */
export function toTar(entries: readonly TarEntry[]): Uint8Array {
  const parts: Uint8Array[] = [];
  const folders = new Set<string>();
  const files = new Set<string>();
  for (const { path, content, mode } of entries) {
    const words = checkPath(path);
    for (let count = 1; count < words.length; count++) {
      const folder = words.slice(0, count).join('/');
      if (folders.has(folder)) continue;
      folders.add(folder);
      parts.push(toHead({ path: folder, kind: 'folder', mode: FOLDER_MODE, size: 0 }));
    }
    if (files.has(path)) throw new RangeError(`two files cannot have the same path ${path}`);
    files.add(path);
    const head = toHead({ path, kind: 'file', mode, size: content.length });
    parts.push(head, content, toPadding(content.length));
  }
  for (const path of files) {
    if (folders.has(path)) throw new RangeError(`${path} cannot be a file and a folder`);
  }
  return joinBytes([...parts, TAR_END]);
}

/** What stands in an archive before the content of a file, for content that does not fit into memory. */
export function toTarHead(file: Omit<TarEntry, 'content'> & { readonly size: number }): Uint8Array {
  checkPath(file.path);
  return toHead({ ...file, kind: 'file' });
}

function toHead({
  path,
  ...member
}: Pick<TarEntry, 'path' | 'mode'> & Pick<TarMember, 'kind' | 'size'>): Uint8Array {
  const [name, target] = [utf8.encode(path), new Uint8Array()];
  return toTarHeader({ ...member, path: name, target, modifiedSeconds: MODIFIED, ownerName: 'root' });
}

/** SECURITY: unpacking it must stay below the folder that it is unpacked in. */
function checkPath(path: string): string[] {
  const words = path.split('/');
  const isOdd = words.some((word) => word === '' || word === '.' || word === '..') || path.includes('\0');
  if (isOdd) throw new RangeError(`a path in an archive is relative and plain, not ${JSON.stringify(path)}`);
  return words;
}
