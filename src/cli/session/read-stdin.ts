import { fstatSync } from 'node:fs';
import type { Terminal } from '../terminal.ts';
import { SlowNote } from '../slow-note.ts';

/** More is sent while the command runs. */
const MOST_AT_ONCE = 1024 * 1024;

/** Whether something is passed to us: a pipe, a file or a socket, but neither a keyboard nor /dev/null. */
export function isStdinPassed(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    // Some start programs without any.
    return false;
  }
}

/** What was passed to us: all of it as text, or the first part and the rest as it comes. */
export type Stdin =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<Uint8Array> };

/** Reads until the end if that is near: only a command whose input is known can wait for its turn. */
export async function readStdin(input: NodeJS.ReadStream, terminal: Terminal): Promise<Stdin> {
  using slow = new SlowNote(terminal);
  slow.tell(() => 'reads its stdin to the end first (-i passes it as it comes, -n none)');
  const source = input[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const held: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= MOST_AT_ONCE) {
    const next = await source.next();
    if (next.done === true) {
      const text = toText(Buffer.concat(held));
      return text === undefined ? { kind: 'stream', chunks: chain(held) } : { kind: 'text', text };
    }
    held.push(next.value);
    bytes += next.value.length;
  }
  return { kind: 'stream', chunks: chain(held, source) };
}

async function* chain(
  held: readonly Uint8Array[],
  rest?: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* held;
  if (rest === undefined) return;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

function toText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
