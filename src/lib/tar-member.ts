import { joinBytes } from './join-bytes.ts';

/** One entry of an archive. Names are bytes, because that is what they are to the kernel. */
export interface TarMember {
  readonly kind: 'file' | 'folder' | 'link';
  readonly path: Uint8Array;
  /** Of a link. */
  readonly target: Uint8Array;
  readonly mode: number;
  readonly size: number;
  readonly modifiedSeconds: number;
  /** Its number is 0 in any case. */
  readonly ownerName?: string;
}

const TAR_BLOCK = 512;
/** Two empty blocks. */
export const TAR_END = new Uint8Array(2 * TAR_BLOCK);

const TYPE_FLAGS = { file: '0', link: '2', folder: '5', pax: 'x' } as const;
const NAME_BYTES = 100;
const LARGEST_IN_HEADER = 8 ** 11 - 1;
const LAST_SECOND = 8 ** 11 - 1;

const utf8 = new TextEncoder();

/** The header, and before it, for what does not fit into it, another member that says it. */
export function toTarHeader(member: TarMember): Uint8Array {
  const path = member.kind === 'folder' ? joinBytes([member.path, utf8.encode('/')]) : member.path;
  const records: Uint8Array[] = [];
  if (path.length > NAME_BYTES) records.push(toPaxRecord('path', path));
  if (member.target.length > NAME_BYTES) records.push(toPaxRecord('linkpath', member.target));
  if (member.size > LARGEST_IN_HEADER) records.push(toPaxRecord('size', utf8.encode(String(member.size))));
  const header = toBlock(TYPE_FLAGS[member.kind], { ...member, path });
  if (records.length === 0) return header;
  const said = joinBytes(records);
  const pax = toBlock(TYPE_FLAGS.pax, {
    ...member,
    path: utf8.encode('@PaxHeader'),
    target: new Uint8Array(),
    mode: 0o644,
    size: said.length,
  });
  return joinBytes([pax, said, toPadding(said.length), header]);
}

/** What follows so many bytes of content. */
export function toPadding(size: number): Uint8Array {
  return new Uint8Array((TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK);
}

/** `<length> key=value\n`, where the length counts itself. */
function toPaxRecord(key: string, value: Uint8Array): Uint8Array {
  const rest = key.length + value.length + 3;
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return joinBytes([utf8.encode(`${length} ${key}=`), value, utf8.encode('\n')]);
}

function toBlock(
  flag: string,
  { path, target, mode, size, modifiedSeconds, ownerName = '' }: Omit<TarMember, 'kind'>,
): Uint8Array {
  const block = new Uint8Array(TAR_BLOCK);
  const text = (at: number, value: string): void => block.set(utf8.encode(value), at);
  const octal = (at: number, width: number, value: number): void =>
    text(at, value.toString(8).padStart(width - 1, '0'));
  const seconds = Math.min(modifiedSeconds, LAST_SECOND);
  block.set(path.subarray(0, NAME_BYTES), 0);
  octal(100, 8, mode & 0o7777);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, Math.min(size, LARGEST_IN_HEADER));
  octal(136, 12, seconds);
  // The sum is counted with spaces in its own place.
  text(148, ' '.repeat(8));
  text(156, flag);
  block.set(target.subarray(0, NAME_BYTES), 157);
  text(257, 'ustar\u000000');
  text(265, ownerName);
  text(297, ownerName);
  const sum = block.reduce((total, byte) => total + byte, 0);
  text(148, `${sum.toString(8).padStart(6, '0')}\0 `);
  return block;
}
