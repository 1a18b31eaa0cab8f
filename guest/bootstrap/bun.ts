// Preload for a hot bun: waits for the job before the main script is loaded, writes the
// script, removes its own traces and lets bun go on natively.
// It calls libc directly: the first use of node:fs changes the order of process.nextTick and
// promises in bun for the rest of the process.
import { dlopen, ptr, read as peek } from 'bun:ffi';

const libc = dlopen('libc.so.6', {
  read: { args: ['int', 'ptr', 'usize'], returns: 'i64_fast' },
  write: { args: ['int', 'ptr', 'usize'], returns: 'i64_fast' },
  open: { args: ['ptr', 'int', 'int'], returns: 'int' },
  close: { args: ['int'], returns: 'int' },
  mkdir: { args: ['ptr', 'int'], returns: 'int' },
  execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'int' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;
const AGAIN = [4, 11];
const EXISTS = 17;
const CREATE_FLAGS = 0o1 | 0o100 | 0o1000 | 0o2000000;

// What bun reads only while it starts: such a job gets a fresh interpreter instead.
const STARTS =
  /^(BUN_|NODE_|JSC_|LC_|LANG|LD_|GLIBC_|MALLOC_|MIMALLOC_|SSL_|HOME=|XDG_|NO_COLOR=|FORCE_COLOR=|COLORTERM=|TERM=)/;

const errno = (): number => peek.i32(libc['__errno_location'](), 0);
const cString = (text: string): Buffer => Buffer.from(`${text}\0`);

function writeAll(fd: number, bytes: Buffer): void {
  for (let offset = 0; offset < bytes.length;) {
    const put = Number(libc.write(fd, ptr(bytes, offset), bytes.length - offset));
    if (put < 0 && !AGAIN.includes(errno())) throw new Error('cannot write');
    offset += Math.max(put, 0);
  }
}

function fail(reason: string): never {
  writeAll(2, Buffer.from(`hotcell: ${reason}\n`));
  process.exit(70);
}

function readSome(buffer: Buffer, offset: number, length: number): number {
  for (;;) {
    const got = Number(libc.read(0, ptr(buffer, offset), length));
    if (got >= 0) return got;
    if (!AGAIN.includes(errno())) fail('cannot read');
    Bun.sleepSync(1);
  }
}

function take(length: number): Buffer {
  const buffer = Buffer.alloc(length);
  for (let offset = 0; offset < length;) {
    const got = readSome(buffer, offset, length - offset);
    if (got === 0) fail('the job frame ends early');
    offset += got;
  }
  return buffer;
}

function field(head = ''): Buffer {
  while (!head.endsWith('\n')) {
    head += take(1).toString('latin1');
    if (head.length > 12) fail('bad job frame');
  }
  if (!/^\d+\n$/.test(head)) fail('bad job frame');
  return take(Number(head));
}

function many<T>(read: () => T): T[] {
  const number = field().toString();
  if (!/^\d+$/.test(number)) fail('bad job frame');
  return Array.from({ length: Number(number) }, read);
}

function write(file: string, content: Buffer): void {
  const fd = libc.open(ptr(cString(file)), CREATE_FLAGS, 0o644);
  if (fd < 0) fail(`cannot open ${file}`);
  writeAll(fd, content);
  libc.close(fd);
}

function extra(base: string): void {
  const name = field().toString();
  const content = field();
  const parts = name.split('/');
  if (parts.includes('') || parts.includes('..')) fail('bad path in the job frame');
  parts.slice(0, -1).reduce((parent, part) => {
    const folder = `${parent}/${part}`;
    if (libc.mkdir(ptr(cString(folder)), 0o777) < 0 && errno() !== EXISTS) fail(`cannot make ${folder}`);
    return folder;
  }, base);
  write(`${base}/${name}`, content);
}

function execute(file: string, args: string[]): never {
  const held: unknown[] = [];
  const words = (list: string[]) => {
    const texts = list.map(cString);
    const table = new BigUint64Array([...texts.map((text) => BigInt(ptr(text))), 0n]);
    held.push(texts, table);
    return ptr(table);
  };
  const env = Object.entries(process.env).map(([name, value]) => `${name}=${String(value)}`);
  libc.execve(ptr(cString(file)), words(args), words(env));
  fail('cannot start a fresh interpreter');
}

function waitForJob(): void {
  const script = Bun.main;
  writeAll(1, Buffer.of(6));
  const first = Buffer.alloc(1);
  if (readSome(first, 0, 1) === 0) process.exit(0);
  const code = field(first.toString('latin1'));
  const args = many(() => field().toString());
  const env = many(() => field().toString());
  write(script, code);
  many(() => extra(script.slice(0, script.lastIndexOf('/'))));
  for (const entry of env) {
    const cut = entry.indexOf('=');
    process.env[entry.slice(0, cut)] = entry.slice(cut + 1);
  }
  if (env.some((entry) => STARTS.test(entry))) {
    execute(process.execPath, [process.argv0, '--no-install', script, ...args]);
  }
  process.argv.push(...args);
}

try {
  waitForJob();
} catch (error) {
  fail(String(error));
}
process.execArgv.length = 0;
// Bun enters a module in its registry only when the module is done.
queueMicrotask(() => delete require.cache[import.meta.path]);
