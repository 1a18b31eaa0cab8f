// Makes the connections of a confined program that may not make any itself: all of them lead to one port of this machine.
// SECURITY: the address in the program's memory is only looked at to tell it that another one is refused. The connection is
// made from here, with an address of our own, so that nothing is won by changing it meanwhile.
import { dlopen, ptr, read as peek } from 'bun:ffi';

const libc = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

const POLLIN = 1;
const NOTIF_RECV = 0xc0502100;
const NOTIF_SEND = 0xc0182101;
const AF_INET = 2;
const EINTR = 4;
const ENOENT = 2;
const EACCES = 13;

const { numbers, port } = JSON.parse(process.argv.at(-1) ?? '');
const call = (name, ...args) => {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = args;
  return Number(libc.syscall(numbers[name], a, b, c, d, e, f));
};
const errno = () => peek.i32(libc['__errno_location'](), 0);

const target = Buffer.alloc(16);
target.writeUInt16LE(AF_INET, 0);
target.writeUInt16BE(port, 2);
target.set([127, 0, 0, 1], 4);

function openProcess(thread) {
  const direct = call('pidfd_open', thread, 0);
  if (direct >= 0) return direct;
  // Only the first thread of a process can be opened.
  const status = require('node:fs').readFileSync(`/proc/${thread}/status`, 'utf8');
  return call('pidfd_open', Number(/^Tgid:\s*(\d+)/m.exec(status)?.[1] ?? 0), 0);
}

/** Is it our port that the program asks for? */
function asksForUs(thread, at, length) {
  if (length < 8) return false;
  const asked = Buffer.alloc(8);
  const here = new BigUint64Array([BigInt(ptr(asked)), 8n]);
  const there = new BigUint64Array([at, 8n]);
  return (
    call('process_vm_readv', thread, ptr(here), 1, ptr(there), 1, 0) === 8 &&
    asked.equals(target.subarray(0, 8))
  );
}

/** The negative number of the error, or 0. */
function connect(thread, fd, at, length) {
  if (!asksForUs(thread, at, length)) return -EACCES;
  const process = openProcess(thread);
  if (process < 0) return -EACCES;
  const socket = call('pidfd_getfd', process, fd, 0);
  call('close', process);
  if (socket < 0) return -EACCES;
  const result = call('connect', socket, ptr(target), target.length) < 0 ? -errno() : 0;
  call('close', socket);
  return result;
}

function serve(listener) {
  const asked = Buffer.alloc(80);
  const answer = Buffer.alloc(24);
  const wait = Buffer.alloc(8);
  for (;;) {
    // When nobody is left who could ask, the listener hangs up. A signal at the parent's death would come from inside its
    // walls, and never get here.
    wait.writeInt32LE(listener, 0);
    wait.writeInt16LE(POLLIN, 4);
    if (call('ppoll', ptr(wait), 1, 0, 0, 0) < 0) {
      if (errno() === EINTR) continue;
      return;
    }
    if ((wait.readInt16LE(6) & POLLIN) === 0) return;
    asked.fill(0);
    if (call('ioctl', listener, NOTIF_RECV, ptr(asked)) < 0) {
      if (errno() === EINTR || errno() === ENOENT) continue;
      return;
    }
    const result = connect(
      asked.readUInt32LE(8),
      asked.readInt32LE(32),
      asked.readBigUInt64LE(40),
      asked.readUInt32LE(48),
    );
    answer.writeBigUInt64LE(asked.readBigUInt64LE(0), 0);
    answer.writeBigInt64LE(0n, 8);
    answer.writeInt32LE(result, 16);
    call('ioctl', listener, NOTIF_SEND, ptr(answer));
  }
}

function takeListener() {
  const line = Buffer.alloc(16);
  const got = call('read', 0, ptr(line), line.length);
  const launcher = call('pidfd_open', call('getppid'), 0);
  return call('pidfd_getfd', launcher, Number.parseInt(line.toString('latin1', 0, Math.max(got, 0)), 10), 0);
}

const listener = takeListener();
if (listener >= 0) {
  const words = Buffer.from('ready\n');
  call('write', 1, ptr(words), words.length);
  serve(listener);
}
