import type { TarMember } from '../lib/tar-member.ts';
import { brokenArchive } from './archive-refusal.ts';
import { ByteSource } from './byte-source.ts';

/** As it stands in the archive. SECURITY: whatever somebody wrote there. */
export interface TarItem extends Omit<TarMember, 'kind' | 'ownerName'> {
  readonly kind: TarMember['kind'] | 'other';
  /** Of a file; what is not read is skipped. */
  content(): AsyncIterable<Uint8Array>;
}

const BLOCK = 512;
/** SECURITY: of the members that say the long name of the next one. */
const LONGEST_HEADER = 64 * 1024;
const KINDS: ReadonlyMap<string, TarItem['kind']> = new Map([
  ['0', 'file'],
  ['\0', 'file'],
  ['7', 'file'],
  ['5', 'folder'],
  ['2', 'link'],
]);

/** What headers before a member say about it. */
interface Said {
  path?: Uint8Array;
  target?: Uint8Array;
  size?: number;
}

/** Reads a tar archive, one member after the other. Throws on everything that is none, and on one that ends too early. */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarItem> {
  const source = new ByteSource(chunks);
  try {
    let said: Said = {};
    for (;;) {
      const header = await source.take(BLOCK);
      if (header === undefined) throw brokenArchive('it ends too early');
      if (header.every((byte) => byte === 0)) return;
      const member = toMember(header);
      const size = said.size ?? member.size;
      const padding = (BLOCK - (size % BLOCK)) % BLOCK;
      if (isAboutNext(member.flag)) {
        said = { ...said, ...toSaid(member.flag, await takeHeader(source, size, padding)) };
        continue;
      }
      let left = hasContent(member.flag) ? size : 0;
      const rest = left === 0 ? 0 : padding;
      yield {
        kind: KINDS.get(member.flag) ?? 'other',
        path: said.path ?? member.path,
        target: said.target ?? member.target,
        mode: member.mode,
        size: left,
        modifiedSeconds: member.modifiedSeconds,
        async *content() {
          while (left > 0) {
            const part = await source.takeSome(left);
            if (part === undefined) throw brokenArchive('it ends too early');
            left -= part.length;
            yield part;
          }
        },
      };
      said = {};
      if (!(await source.skip(left + rest))) throw brokenArchive('it ends too early');
    }
  } finally {
    await source.close();
  }
}

/** Links and folders have a size in some archives, but nothing follows. */
function hasContent(flag: string): boolean {
  return !['1', '2', '3', '4', '5', '6'].includes(flag);
}

function isAboutNext(flag: string): boolean {
  return ['x', 'g', 'L', 'K'].includes(flag);
}

async function takeHeader(source: ByteSource, size: number, padding: number): Promise<Uint8Array> {
  if (size > LONGEST_HEADER) throw brokenArchive('a name in it is too long');
  const bytes = await source.take(size + padding);
  if (bytes === undefined) throw brokenArchive('it ends too early');
  return bytes.subarray(0, size);
}

function toSaid(flag: string, bytes: Uint8Array): Said {
  if (flag === 'L') return { path: untilNul(bytes) };
  if (flag === 'K') return { target: untilNul(bytes) };
  // What is said about all members is nothing that we use.
  if (flag === 'g') return {};
  const said: Said = {};
  for (const [key, value] of paxRecords(bytes)) {
    if (key === 'path') said.path = value;
    if (key === 'linkpath') said.target = value;
    if (key === 'size') said.size = toNumber(text(value), 10);
  }
  return said;
}

/** `<length> key=value\n`, where the length counts itself. */
function* paxRecords(bytes: Uint8Array): Generator<[string, Uint8Array]> {
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(0x20, at);
    const length = space === -1 ? 0 : toNumber(text(bytes.subarray(at, space)), 10);
    const record = bytes.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(0x3d);
    if (length < 5 || at + length > bytes.length || equals < 1)
      throw brokenArchive('a header in it is wrong');
    yield [text(record.subarray(0, equals)), record.subarray(equals + 1)];
    at += length;
  }
}

function toMember(header: Uint8Array): Omit<TarItem, 'kind' | 'content'> & { readonly flag: string } {
  const field = (at: number, length: number): Uint8Array => header.subarray(at, at + length);
  const number = (at: number, length: number): number => toFieldNumber(field(at, length));
  // The sum is counted with spaces in its own place.
  const sum = header.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  if (number(148, 8) !== sum) throw brokenArchive('it is no tar archive');
  const isUstar = text(field(257, 5)) === 'ustar';
  const name = untilNul(field(0, 100));
  const prefix = isUstar && header[263] === 0x30 ? untilNul(field(345, 155)) : new Uint8Array();
  return {
    flag: text(field(156, 1)),
    path: prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name]),
    target: untilNul(field(157, 100)),
    mode: number(100, 8),
    size: number(124, 12),
    modifiedSeconds: number(136, 12),
  };
}

/** Octal digits, or, for what is too large for them, the number itself. */
function toFieldNumber(field: Uint8Array): number {
  if (((field[0] ?? 0) & 0x80) === 0) return toNumber(text(field).replaceAll(/[\0 ]+/g, '') || '0', 8);
  const value = field.reduce((total, byte, at) => total * 256 + (at === 0 ? byte & 0x7f : byte), 0);
  if (!Number.isSafeInteger(value)) throw brokenArchive('a number in it is too large');
  return value;
}

function toNumber(digits: string, base: 8 | 10): number {
  const value = (base === 8 ? /^[0-7]+$/ : /^\d+$/).test(digits) ? Number.parseInt(digits, base) : Number.NaN;
  if (!Number.isSafeInteger(value)) throw brokenArchive('a number in it is wrong');
  return value;
}

function untilNul(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(0);
  return end === -1 ? bytes : bytes.subarray(0, end);
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
