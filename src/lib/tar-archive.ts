import { joinBytes } from './join-bytes.ts';

export interface TarEntry {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly content: Uint8Array;
  readonly mode: number;
}

const BLOCK = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const LARGEST_FILE = 8 ** 11 - 1;
const FOLDER_MODE = 0o755;
/** Always the same, so that the same files make the same archive. Not 0: some programs warn of files from 1970. */
const MODIFIED = Date.UTC(2024, 0, 1) / 1000;

const utf8 = new TextEncoder();

/** A ustar archive of files that belong to root. The folders on the way are in it too, each before what it holds. */
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
      parts.push(...toMember({ path: `${folder}/`, kind: 'folder', mode: FOLDER_MODE, size: 0 }));
    }
    if (files.has(path)) throw new RangeError(`two files cannot have the same path ${path}`);
    files.add(path);
    parts.push(...toMember({ path, kind: 'file', mode, size: content.length }), ...padded(content));
  }
  for (const path of files) {
    if (folders.has(path)) throw new RangeError(`${path} cannot be a file and a folder`);
  }
  // Two empty blocks are the end.
  return joinBytes([...parts, new Uint8Array(2 * BLOCK)]);
}

/** What stands in an archive before the content of a file, for content that does not fit into memory. */
export function toTarHead(file: Omit<TarEntry, 'content'> & { readonly size: number }): Uint8Array {
  checkPath(file.path);
  return joinBytes(toMember({ ...file, kind: 'file' }));
}

/** What stands after it: the rest of its last block. */
export function toTarTail(size: number): Uint8Array {
  return new Uint8Array(size % BLOCK === 0 ? 0 : BLOCK - (size % BLOCK));
}

/** SECURITY: whoever unpacks it must stay below the folder where he unpacks. */
function checkPath(path: string): string[] {
  const words = path.split('/');
  const isOdd = words.some((word) => word === '' || word === '.' || word === '..') || path.includes('\0');
  if (isOdd) throw new RangeError(`a path in an archive is relative and plain, not ${JSON.stringify(path)}`);
  return words;
}

type Kind = 'file' | 'folder' | 'pax';
const TYPE_FLAG: Readonly<Record<Kind, string>> = { file: '0', folder: '5', pax: 'x' };

interface Member {
  readonly path: string;
  readonly kind: Kind;
  readonly mode: number;
  readonly size: number;
}

/** The header; before it, for a path that does not fit, another member that says the path. */
function toMember(member: Member): Uint8Array[] {
  if (member.size > LARGEST_FILE) throw new RangeError(`${member.path} is too large for an archive`);
  const place = toPlace(member.path);
  if (place !== undefined) return [toHeader(member, place)];
  const record = toPaxRecord('path', member.path);
  const pax: Member = { path: '@PaxHeader', kind: 'pax', mode: 0o644, size: record.length };
  const shortened = { name: utf8.encode(member.path).subarray(0, NAME_BYTES), prefix: new Uint8Array() };
  return [
    toHeader(pax, { name: utf8.encode(pax.path), prefix: new Uint8Array() }),
    ...padded(record),
    toHeader(member, shortened),
  ];
}

interface Place {
  readonly name: Uint8Array;
  readonly prefix: Uint8Array;
}

/** A long path is cut at a slash into a prefix and a name, if there is a slash where both fit. */
function toPlace(path: string): Place | undefined {
  const whole = utf8.encode(path);
  if (whole.length <= NAME_BYTES) return { name: whole, prefix: new Uint8Array() };
  const slash = '/'.charCodeAt(0);
  const cut = whole.indexOf(slash, whole.length - NAME_BYTES - 1);
  if (cut < 1 || cut > PREFIX_BYTES || cut === whole.length - 1) return undefined;
  return { name: whole.subarray(cut + 1), prefix: whole.subarray(0, cut) };
}

/** `<length> path=<path>\n`, where the length counts itself. */
function toPaxRecord(key: string, value: string): Uint8Array {
  const rest = utf8.encode(` ${key}=${value}\n`).length;
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return utf8.encode(`${length} ${key}=${value}\n`);
}

function toHeader(member: Member, place: Place): Uint8Array {
  const header = new Uint8Array(BLOCK);
  const text = (at: number, value: string): void => header.set(utf8.encode(value), at);
  const octal = (at: number, width: number, value: number): void =>
    text(at, value.toString(8).padStart(width - 1, '0'));
  header.set(place.name, 0);
  octal(100, 8, member.mode & 0o7777);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, member.size);
  octal(136, 12, MODIFIED);
  // The sum is counted with spaces in its own place.
  text(148, ' '.repeat(8));
  text(156, TYPE_FLAG[member.kind]);
  text(257, 'ustar\u000000');
  text(265, 'root');
  text(297, 'root');
  header.set(place.prefix, 345);
  const sum = header.reduce((total, byte) => total + byte, 0);
  text(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return header;
}

function padded(content: Uint8Array): Uint8Array[] {
  const rest = content.length % BLOCK;
  return rest === 0 ? [content] : [content, new Uint8Array(BLOCK - rest)];
}
