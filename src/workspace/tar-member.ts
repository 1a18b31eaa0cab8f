/** One entry of an archive. Names are bytes, because that is what they are to the kernel. */
export interface TarMember {
  readonly kind: 'file' | 'folder' | 'link';
  readonly path: Buffer;
  /** Of a link. */
  readonly target: Buffer;
  readonly mode: number;
  readonly size: number;
  readonly modifiedSeconds: number;
}

const TAR_BLOCK = 512;
/** Two empty blocks. */
export const TAR_END = Buffer.alloc(2 * TAR_BLOCK);

const TYPE_FLAGS = { file: '0', link: '2', folder: '5', pax: 'x' } as const;
const NAME_BYTES = 100;
const LARGEST_IN_HEADER = 8 ** 11 - 1;
const LAST_SECOND = 8 ** 11 - 1;

/** The header, and before it, for what does not fit into it, another member that says it. */
export function toTarHeader(member: TarMember): Buffer {
  const path = member.kind === 'folder' ? Buffer.concat([member.path, Buffer.from('/')]) : member.path;
  const records: Buffer[] = [];
  if (path.length > NAME_BYTES) records.push(toPaxRecord('path', path));
  if (member.target.length > NAME_BYTES) records.push(toPaxRecord('linkpath', member.target));
  if (member.size > LARGEST_IN_HEADER) records.push(toPaxRecord('size', Buffer.from(String(member.size))));
  const header = toBlock(TYPE_FLAGS[member.kind], { ...member, path });
  if (records.length === 0) return header;
  const said = Buffer.concat(records);
  const pax = toBlock(TYPE_FLAGS.pax, {
    path: Buffer.from('@PaxHeader'),
    target: Buffer.alloc(0),
    mode: 0o644,
    size: said.length,
    modifiedSeconds: member.modifiedSeconds,
  });
  return Buffer.concat([pax, said, toPadding(said.length), header]);
}

/** What follows so many bytes of content. */
export function toPadding(size: number): Buffer {
  return Buffer.alloc((TAR_BLOCK - (size % TAR_BLOCK)) % TAR_BLOCK);
}

/** `<length> key=value\n`, where the length counts itself. */
function toPaxRecord(key: string, value: Buffer): Buffer {
  const rest = key.length + value.length + 3;
  let length = rest;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return Buffer.concat([Buffer.from(`${length} ${key}=`), value, Buffer.from('\n')]);
}

function toBlock(
  flag: string,
  { path, target, mode, size, modifiedSeconds }: Omit<TarMember, 'kind'>,
): Buffer {
  const block = Buffer.alloc(TAR_BLOCK);
  const octal = (at: number, width: number, value: number): void => {
    block.write(value.toString(8).padStart(width - 1, '0'), at, 'latin1');
  };
  const seconds = Math.min(modifiedSeconds, LAST_SECOND);
  block.set(path.subarray(0, NAME_BYTES), 0);
  octal(100, 8, mode & 0o7777);
  octal(108, 8, 0);
  octal(116, 8, 0);
  octal(124, 12, Math.min(size, LARGEST_IN_HEADER));
  octal(136, 12, seconds);
  // The sum is counted with spaces in its own place.
  block.write(' '.repeat(8), 148, 'latin1');
  block.write(flag, 156, 'latin1');
  block.set(target.subarray(0, NAME_BYTES), 157);
  block.write('ustar\u000000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
