// For a Bun that is started before there is code for it. Lines on stdin tell it what to load, and when to go on.
// It calls libc directly: the first use of node:fs changes the order of process.nextTick and promises in Bun for the rest of
// the process. Taken before any hook could refuse it.
import { dlopen, ptr, read as peek } from 'bun:ffi';

const libc = dlopen('libc.so.6', {
  read: { args: ['int', 'ptr', 'usize'], returns: 'i64_fast' },
  write: { args: ['int', 'ptr', 'usize'], returns: 'i64_fast' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;
const AGAIN = [4, 11];
const READY = 6;
const NEWLINE = 10;
const pointer = ptr;
const { i32 } = peek;
const sleep = Bun.sleepSync;
const leave = process.exit.bind(process);
const resolve = Bun.resolveSync;

/** Byte by byte: what comes after the line belongs to the code. */
function readLine(): string {
  const byte = Buffer.alloc(1);
  const bytes: number[] = [];
  for (;;) {
    const got = Number(libc.read(0, pointer(byte), 1));
    if (got === 1 && byte[0] === NEWLINE) return Buffer.from(bytes).toString();
    if (got === 1) bytes.push(byte[0] ?? 0);
    else if (got === 0 || !AGAIN.includes(i32(libc['__errno_location'](), 0))) leave(0);
    else sleep(1);
  }
}

/** What the code will import first, in its order. */
export function readPackages(): string[] {
  return JSON.parse(readLine());
}

/** As the code will find them. Whatever goes wrong here goes wrong again, and for all to see, without us. */
export async function loadPackages(names: readonly string[]): Promise<void> {
  const folder = Bun.main.slice(0, Bun.main.lastIndexOf('/'));
  try {
    for (const name of names) await import(resolve(name, folder));
  } catch {
    leave(1);
  }
}

export function waitForGo(): void {
  const ready = Buffer.of(READY);
  if (Number(libc.write(1, pointer(ready), 1)) !== 1) leave(1);
  readLine();
}
