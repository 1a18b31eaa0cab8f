// Confines itself as the plan on descriptor 3 says, and then becomes the program of the plan.
// SECURITY: any step that fails ends it. What went wrong is told on descriptor 3, which the program never sees.
// It boots for every command, so it imports nothing that costs time.
import { dlopen, ptr, read as peek } from 'bun:ffi';

const libc = dlopen('libc.so.6', {
  syscall: { args: ['i64', 'i64', 'i64', 'i64', 'i64', 'i64', 'i64'], returns: 'i64_fast' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;

const PLAN = 3;
const READ_BYTES = 65_536;
const EINTR = 4;
const EAGAIN = 11;
const ENOENT = 2;
const EINVAL = 22;

const AT_FDCWD = -100;
const O_WRONLY_CREATE = 0o2000101;
const O_PATH = 0o12000000;
const O_CLOEXEC = 0o2000000;
const SIGKILL = 9;
const SIG_SETMASK = 2;
const SIGNALS = 64;
const CLOSE_RANGE_CLOEXEC = 4;

const PR_SET_PDEATHSIG = 1;
const PR_SET_DUMPABLE = 4;
const PR_SET_KEEPCAPS = 8;
const PR_CAPBSET_DROP = 24;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_RAISE = 2;
const PR_SET_PTRACER = 0x59616d61;
const CAPABILITIES = 64;
const CAPABILITY_VERSION = 0x20080522;
const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_NEW_LISTENER = 8;
const LANDLOCK_PATH_BENEATH = 1;

// What the kernel reads must not be collected before it has.
const held = [];
const address = (bytes) => (held.push(bytes), ptr(bytes));
const text = (words) => address(Buffer.from(`${words}\0`));
const table = (list) => address(new BigUint64Array([...list.map((entry) => BigInt(text(entry))), 0n]));

let numbers = {};
const errno = () => peek.i32(libc['__errno_location'](), 0);

function attempt(name, ...args) {
  const [a = 0, b = 0, c = 0, d = 0, e = 0] = args;
  return Number(libc.syscall(numbers[name], a, b, c, d, e, 0));
}

function call(name, ...args) {
  const result = attempt(name, ...args);
  if (result < 0) fail(`${name}: error ${errno()}`);
  return result;
}

function fail(reason) {
  const words = Buffer.from(reason);
  attempt('write', PLAN, address(words), words.length);
  attempt('exit_group', 70);
}

function readAll(fd, isWhole) {
  const chunks = [];
  const chunk = Buffer.alloc(READ_BYTES);
  for (;;) {
    const got = Number(libc.syscall(numbers.read, fd, ptr(chunk), chunk.length, 0, 0, 0));
    if (got < 0 && errno() !== EINTR && errno() !== EAGAIN) return '';
    if (got < 0) Bun.sleepSync(1);
    if (got > 0) chunks.push(Buffer.from(chunk.subarray(0, got)));
    if (got === 0 || isWhole?.(chunk, got)) return Buffer.concat(chunks).toString();
  }
}

function takeIdentity({ id, capabilities }) {
  for (let number = 0; number < CAPABILITIES; number++) {
    if (capabilities.includes(number)) continue;
    // The first one that this kernel does not have.
    if (attempt('prctl', PR_CAPBSET_DROP, number) < 0 && errno() === EINVAL) break;
  }
  call('setgroups', 0, 0);
  call('prctl', PR_SET_KEEPCAPS, 1);
  call('setresgid', id, id, id);
  call('setresuid', id, id, id);
  dropCapabilities(capabilities);
  for (const number of capabilities) call('prctl', PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number);
  // The change of ids forbade others of this id to look; the connector has to.
  call('prctl', PR_SET_DUMPABLE, 1);
}

function dropCapabilities(kept) {
  const mask = kept.reduce((bits, number) => bits + 2 ** number, 0);
  call(
    'capset',
    address(new Uint32Array([CAPABILITY_VERSION, 0])),
    address(new Uint32Array([mask, mask, mask, 0, 0, 0])),
  );
}

function pinToCores(count) {
  const mask = Buffer.alloc(128);
  const size = call('sched_getaffinity', 0, mask.length, address(mask));
  const cores = [];
  for (let core = 0; core < size * 8; core++) if (mask[core >> 3] & (1 << (core & 7))) cores.push(core);
  if (cores.length <= count) return;
  const first = process.pid % cores.length;
  const chosen = Buffer.alloc(128);
  for (let index = 0; index < count; index++) {
    const core = cores[(first + index) % cores.length];
    chosen[core >> 3] |= 1 << (core & 7);
  }
  call('sched_setaffinity', 0, chosen.length, address(chosen));
}

function openRulePath({ path, make }) {
  const fd = attempt('openat', AT_FDCWD, text(path), O_PATH, 0);
  if (fd >= 0 || errno() !== ENOENT || !make) return fd;
  const made = attempt('openat', AT_FDCWD, text(path), O_WRONLY_CREATE, 0o666);
  if (made < 0) return made;
  attempt('close', made);
  return attempt('openat', AT_FDCWD, text(path), O_PATH, 0);
}

function restrict({ handled, rules }) {
  const ruleset = call(
    'landlock_create_ruleset',
    address(new BigUint64Array(handled.map(BigInt))),
    handled.length * 8,
  );
  for (const rule of rules) {
    // What is not there, or closed to us, needs no rule.
    const fd = openRulePath(rule);
    if (fd < 0) continue;
    const add = (rights) => {
      const attribute = Buffer.alloc(12);
      attribute.writeBigUInt64LE(BigInt(rights));
      attribute.writeInt32LE(fd, 8);
      return attempt('landlock_add_rule', ruleset, LANDLOCK_PATH_BENEATH, address(attribute));
    };
    if (add(rule.rights) < 0 && !(errno() === EINVAL && add(rule.fileRights) >= 0))
      fail(`${rule.path} cannot be opened for the program: error ${errno()}`);
    attempt('close', fd);
  }
  call('landlock_restrict_self', ruleset, 0);
}

function startConnector({ port, argv }) {
  const ends = new Int32Array(4);
  call('pipe2', address(ends), O_CLOEXEC);
  call('pipe2', ptr(ends, 8), O_CLOEXEC);
  const [input, toIt, fromIt, output] = ends;
  const { pid } = Bun.spawn([...argv, JSON.stringify({ numbers, port })], {
    stdio: [input, output, 'ignore'],
    env: {},
    cwd: '/',
  });
  attempt('close', input);
  attempt('close', output);
  attempt('prctl', PR_SET_PTRACER, pid);
  return (listener) => {
    const words = Buffer.from(`${listener}\n`);
    call('write', toIt, address(words), words.length);
    if (readAll(fromIt, () => true) !== 'ready\n') fail('nobody is there to make connections');
  };
}

function filter(program, handOver) {
  const bytes = Buffer.from(program, 'base64');
  const header = Buffer.alloc(16);
  header.writeUInt16LE(bytes.length / 8);
  header.writeBigUInt64LE(BigInt(address(bytes)), 8);
  const flags = handOver === undefined ? 0 : SECCOMP_NEW_LISTENER;
  const listener = call('seccomp', SECCOMP_SET_MODE_FILTER, flags, address(header));
  handOver?.(listener);
}

function restoreSignals() {
  const standard = address(Buffer.alloc(32));
  for (let signal = 1; signal <= SIGNALS; signal++) attempt('rt_sigaction', signal, standard, 0, 8);
  call('rt_sigprocmask', SIG_SETMASK, address(Buffer.alloc(8)), 0, 8);
}

function report() {
  const version = attempt('landlock_create_ruleset', 0, 0, 1);
  // A filter that is not there: the kernel says that it would look at one.
  const hasFilters = attempt('seccomp', SECCOMP_SET_MODE_FILTER, 0, 0) < 0 && errno() === 14;
  const hasNotify = attempt('seccomp', 2, 0, address(new Uint32Array([0x7fc00000]))) === 0;
  const words = Buffer.from(
    JSON.stringify({ landlock: Math.max(0, version), seccomp: hasFilters, notify: hasNotify }),
  );
  call('write', 1, address(words), words.length);
}

function launch(plan) {
  call('prctl', PR_SET_NO_NEW_PRIVS, 1);
  if (plan.cores !== undefined) pinToCores(plan.cores);
  if (plan.identity === undefined) dropCapabilities([]);
  else takeIdentity(plan.identity);
  call('prctl', PR_SET_PDEATHSIG, SIGKILL);
  // Whoever started us may have died before that was said.
  if (call('getppid') !== plan.parent) fail('the server is gone');
  call('chdir', text(plan.cwd));
  const handOver = plan.connector === undefined ? undefined : startConnector(plan.connector);
  if (plan.landlock !== undefined) restrict(plan.landlock);
  if (plan.touch !== undefined)
    attempt('close', attempt('openat', AT_FDCWD, text(plan.touch), O_WRONLY_CREATE, 0o644));
  const [file, argv, env] = [text(plan.program), table(plan.argv), table(plan.env)];
  const limits = plan.rlimits.map(([resource, value]) => [
    resource,
    address(new BigUint64Array([BigInt(value), BigInt(value)])),
  ]);
  restoreSignals();
  call('close_range', PLAN, 0xffffffff, CLOSE_RANGE_CLOEXEC);
  if (plan.filter !== undefined) filter(plan.filter, handOver);
  for (const [resource, value] of limits) call('prlimit64', 0, resource, value, 0);
  call('execve', file, argv, env);
}

try {
  // The numbers of read(2) differ, and the plan that has them must be read first.
  numbers = { read: process.arch === 'arm64' ? 63 : 0 };
  const plan = JSON.parse(readAll(PLAN));
  numbers = plan.numbers;
  if (plan.report === true) report();
  else launch(plan);
} catch (error) {
  fail(String(error));
}
