import { constants, type Stats } from 'node:fs';
import { open } from 'node:fs/promises';

export type PlainFile =
  | { readonly kind: 'file'; readonly bytes: Buffer; readonly mode: number }
  | { readonly kind: 'missing' }
  /** Why, for people. */
  | { readonly kind: 'refused'; readonly why: string };

/**
 * A file that is one: no link, no folder, nothing that could be waited for.
 * SECURITY: the size is looked at on what was opened, and no more than that is read.
 */
export async function readPlainFile(path: string, mostBytes: number): Promise<PlainFile> {
  let handle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const info = await handle.stat();
    const why = whyNot(info, mostBytes);
    if (why !== undefined) return { kind: 'refused', why };
    const bytes = Buffer.alloc(info.size);
    const { bytesRead } = await handle.read(bytes, 0, info.size, 0);
    return { kind: 'file', bytes: bytes.subarray(0, bytesRead), mode: info.mode };
  } catch (error) {
    return toFailure(error);
  } finally {
    await handle?.close();
  }
}

function whyNot(info: Stats, mostBytes: number): string | undefined {
  if (!info.isFile()) return 'it is not a plain file';
  return info.size > mostBytes ? `it has more than ${mostBytes} bytes` : undefined;
}

function toFailure(error: unknown): PlainFile {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
  if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' };
  return { kind: 'refused', why: code === 'ELOOP' ? 'it is a link' : `it cannot be read (${code})` };
}
