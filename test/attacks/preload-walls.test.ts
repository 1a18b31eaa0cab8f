import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, readFileSync, rmSync, statSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CellFiles } from '../../src/cells/cell-files.ts';
import type { Cell } from '../../src/core/cell.ts';
import type { ExecOutcome } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS } from '../../src/core/limits.ts';
import { bash, finish, readLine, survivors } from '../contract/cells.ts';
import { layBait, type Bait } from '../support/bait.ts';
import { closePlace, makeCodeCell, onlyPreload } from '../support/code-places.ts';
import { listProcesses, waitFor } from '../support/leftovers.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';

const place = onlyPreload();
afterAll(() => closePlace(place));

let bait: Bait;
beforeEach(async () => void (bait = await layBait()));
afterEach(() => bait.remove());

const NO_PROGRAMS = { read: [], write: [], port: undefined, programs: false } as const;

/** System calls of code that no hook has seen, by Bun's own way to native code. */
const native = (calls: string): string => `import { dlopen, ptr, read } from 'bun:ffi';
const libc = dlopen('libc.so.6', {
  syscall: { args: Array(7).fill('i64'), returns: 'i64' },
  __errno_location: { args: [], returns: 'ptr' },
}).symbols;
const call = (n, ...args) => {
  const result = Number(libc.syscall(n, ...[...args, 0, 0, 0, 0, 0, 0].slice(0, 6)));
  return result < 0 ? 'error ' + read.i32(libc.__errno_location(), 0) : 'did ' + result;
};
const text = (words) => ptr(Buffer.from(words + '\\0'));
const inet = (port) => { const a = Buffer.alloc(16); a[0] = 2; a.writeUInt16BE(port, 2); a.set([127, 0, 0, 1], 4); return a; };
const unix = (path) => Buffer.concat([Buffer.from([1, 0]), Buffer.from(path), Buffer.alloc(1)]);
${calls}`;

async function runNative(calls: string): Promise<{ stdout: string; stderr: string; outcome: ExecOutcome }> {
  const { cell, folder } = await makeCodeCell(place, native(calls));
  try {
    const exec = await cell.exec({
      argv: ['bun', '--no-install', '{code}/main.ts'],
      env: {},
      reach: NO_PROGRAMS,
    });
    exec.closeStdin();
    return await finish(exec);
  } finally {
    await cell.dispose();
    rmSync(folder, { recursive: true });
  }
}

const ARM = process.arch === 'arm64';
/** Number on x64, number on arm64, and arguments that would do something. */
const CALLS: Readonly<Record<string, readonly [x64: number, arm64: number, args: string]>> = {
  ptrace: [101, 117, '0, 0, 0, 0'],
  process_vm_readv: [310, 270, 'process.ppid, 0, 0, 0, 0, 0'],
  process_vm_writev: [311, 271, 'process.ppid, 0, 0, 0, 0, 0'],
  pidfd_getfd: [438, 438, '0, 0, 0'],
  io_uring_setup: [425, 425, '4, ptr(Buffer.alloc(120))'],
  bpf: [321, 280, '0, ptr(Buffer.alloc(120)), 120'],
  perf_event_open: [298, 241, 'ptr(Buffer.alloc(120)), 0, -1, -1, 0'],
  userfaultfd: [323, 282, '1'],
  mount: [165, 40, "text('none'), text('/tmp'), text('tmpfs'), 0, 0"],
  open_tree: [428, 428, "-100, text('/tmp'), 1"],
  fsopen: [430, 430, "text('tmpfs'), 0"],
  mount_setattr: [442, 442, "-100, text('/tmp'), 0, ptr(Buffer.alloc(32)), 32"],
  unshare: [272, 97, '0x10000000'],
  setns: [308, 268, '0, 0'],
  chroot: [161, 51, "text('/tmp')"],
  pivot_root: [155, 41, "text('/tmp'), text('/tmp')"],
  keyctl: [250, 219, '0, -3, 1'],
  add_key: [248, 217, "text('user'), text('x'), text('y'), 1, -3"],
  kexec_load: [246, 104, '0, 0, 0, 0'],
  init_module: [175, 105, "text(''), 0, text('')"],
  reboot: [169, 142, '0xfee1dead, 672274793, 0, 0'],
  swapon: [167, 224, "text('x'), 0"],
  syslog: [103, 116, '3, ptr(Buffer.alloc(64)), 64'],
  fanotify_init: [300, 262, '0, 0'],
  inotify_init1: [294, 26, '0'],
  open_by_handle_at: [304, 265, '3, ptr(Buffer.alloc(128)), 0'],
  memfd_create: [319, 279, "text('x'), 0"],
  shmget: [29, 194, '0, 4096, 0o1777'],
  clone3: [435, 435, 'ptr(Buffer.alloc(88)), 88'],
  clone: [56, 220, '17, 0, 0, 0, 0'],
  'clone into a namespace': [56, 220, '0x10000000 + 17, 0, 0, 0, 0'],
  'a signal to the server': [62, 129, 'process.ppid, 0'],
  'the limits of the server': [302, 261, 'process.ppid, 7, ptr(Buffer.alloc(16)), 0'],
  'the fate of the server no longer shared': [157, 167, '1, 0'],
  'more cores': [203, 122, '0, 8, ptr(Buffer.alloc(8, 255))'],
};

describe('a system call', () => {
  test.each(Object.entries(CALLS))('[MC-02, SC-03] %s fails', async (_name, [x64, arm64, args]) => {
    const { stdout } = await runNative(`console.log(call(${ARM ? arm64 : x64}, ${args}));`);
    expect(stdout).toMatch(/^error (1|3|13|38)\n$/);
  });

  testThatNeeds(ARM ? 'x32 is a convention of x64' : undefined)(
    '[MC-02] of another calling convention ends the program',
    async () => {
      const { stdout, outcome } = await runNative(`console.log(call(0x40000000 + 39));`);
      expect({ stdout, outcome }).toEqual({ stdout: '', outcome: { kind: 'signalled', signal: 31 } });
    },
  );
});

describe('a socket', () => {
  const [SOCKET, CONNECT, SENDTO, SOCKETPAIR] = ARM ? [198, 203, 206, 199] : [41, 42, 44, 53];
  test.each([
    ['of TCP', '2, 1, 0'],
    ['of UDP', '2, 2, 0'],
    ['of MPTCP', '2, 1, 262'],
    ['of IPv6', '10, 1, 0'],
    ['of the machine', '1, 1, 0'],
    ['of netlink', '16, 3, 0'],
    ['of packets', '17, 3, 0'],
    ['of a hypervisor', '40, 1, 0'],
  ])('[MC-02] %s cannot be had', async (_what, args) => {
    const { stdout } = await runNative(`console.log(call(${SOCKET}, ${args}));`);
    expect(stdout).toBe('error 13\n');
  });

  test('[MC-02] of a pair cannot be sent from to another one', async () => {
    const { stdout } = await runNative(`
const pair = new Int32Array(2);
console.log(call(${SOCKETPAIR}, 1, 2, 0, ptr(pair)));
console.log(call(${SOCKETPAIR}, 1, 1, 0, ptr(pair)));
const to = unix(${JSON.stringify(bait.socketPath)});
console.log(call(${SENDTO}, pair[0], text('x'), 1, 0, ptr(to), to.length));
console.log(call(${CONNECT}, pair[0], ptr(to), to.length));`);
    expect(stdout).toMatch(/^error 13\ndid 0\nerror \d+\nerror 13\n$/);
    expect(bait.visitors).toEqual([]);
  });

  test('[MC-04] with a port granted, reaches that port of this machine and no other place', async () => {
    const other = await layBait();
    const code = native(`
const ask = (label, address, flags = 0) => {
  const fd = Number(call(${SOCKET}, 2, 1, 6).slice(4));
  const how = flags === 0 ? call(${CONNECT}, fd, ptr(address), 16) : call(${SENDTO}, fd, text('x'), 1, flags, ptr(address), 16);
  console.log(label, how);
};
const elsewhere = inet(${bait.tcpPort});
elsewhere.set([127, 0, 0, 2], 4);
ask('granted', inet(${bait.tcpPort}));
ask('other port', inet(${other.tcpPort}));
ask('other address', elsewhere);
ask('fast', inet(${other.tcpPort}), 0x20000000);
ask('fast to the granted one', inet(${bait.tcpPort}), 0x20000000);
console.log('udp', call(${SOCKET}, 2, 2, 0));
console.log('short', call(${CONNECT}, 0, ptr(inet(1)), 4), call(${CONNECT}, 0, 1, 16));
console.log((await fetch('http://127.0.0.1:${bait.tcpPort}').catch(String)));`);
    const { cell, folder } = await makeCodeCell(place, code);
    const exec = await cell.exec({
      argv: ['bun', '--no-install', '{code}/main.ts'],
      env: {},
      reach: { ...NO_PROGRAMS, port: bait.tcpPort },
    });
    exec.closeStdin();
    const { stdout } = await finish(exec);
    await cell.dispose();
    rmSync(folder, { recursive: true });
    expect(stdout.split('\n').slice(0, 7)).toEqual([
      'granted did 0',
      'other port error 13',
      'other address error 13',
      'fast error 13',
      'fast to the granted one error 13',
      'udp error 13',
      'short error 13 error 13',
    ]);
    await waitFor('the granted connection is seen', () => bait.visitors.length > 0);
    expect(new Set(bait.visitors)).toEqual(new Set(['tcp']));
    expect(other.visitors).toEqual([]);
    await other.remove();
    // Whoever made the connections has gone with the command.
    await waitFor('nobody is left', () => survivors('preload/connect.ts').length === 0);
  });
});

/** The first process of the only command that runs in a cell. */
function pidOf(marker: string): number {
  const line = spawnSync('pgrep', ['-f', '-o', marker], { encoding: 'utf8' }).stdout.trim();
  return Number(line);
}

describe('from outside', () => {
  test('[MC-02, SC-03] a command has no capability, no way to new ones, a filter, and nobody’s ids', async () => {
    const marker = `marker-${randomUUID()}`;
    const cell = await makeCell();
    const exec = await cell.exec(bash(`echo up; exec -a ${marker} sleep 1000`));
    await readLine(exec);
    await waitFor('it runs', () => survivors(marker).length > 0);
    const status = readFileSync(`/proc/${pidOf(marker)}/status`, 'utf8');
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
    expect(field('Seccomp')).toBe('2');
    expect(field('NoNewPrivs')).toBe('1');
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb', ...(isRoot ? ['CapBnd'] : [])])
      expect([name, field(name)]).toEqual([name, '0'.repeat(16)]);
    const owner = statSync(cell.workdir).uid;
    expect(new Set([...field('Uid').split(/\s+/), ...field('Gid').split(/\s+/)])).toEqual(
      new Set([String(owner)]),
    );
    // The user's own id where we cannot take on another one.
    expect(owner).toBeGreaterThanOrEqual(isRoot ? 0x70000000 : 1);
    expect(readFileSync(`/proc/${pidOf(marker)}/environ`, 'latin1')).not.toContain('VITEST');
    await cell.dispose();
    expect(survivors(marker)).toEqual([]);
  });

  test('[MC-06] killing one command leaves the other, also where it called itself a session of its own', async () => {
    const [one, two] = [`one-${randomUUID()}`, `two-${randomUUID()}`];
    const cell = await makeCell();
    const hidden = (name: string): string =>
      `(setsid env -i setsid bash -c 'trap "" TERM HUP; exec -a ${name} sleep 1000' &) ; echo up; sleep 1000`;
    const victim = await cell.exec(bash(hidden(one)));
    const other = await cell.exec(bash(hidden(two)));
    await Promise.all([readLine(victim), readLine(other)]);
    await waitFor('both run', () => survivors(one).length > 0 && survivors(two).length > 0);
    await victim.kill('cancelled');
    expect((await finish(victim)).outcome).toEqual({ kind: 'cancelled' });
    await waitFor('the first is gone', () => survivors(one).length === 0);
    expect(survivors(two)).not.toEqual([]);
    await cell.dispose();
    await waitFor('the second, too', () => survivors(two).length === 0);
  });

  test('[MC-02] /proc shows nothing of anybody else', async () => {
    const cell = await makeCell();
    const look = `ls /proc /proc/1 2>&1 | grep -v -i denied; cat /proc/1/cmdline /proc/$PPID/cmdline /proc/net/tcp /proc/mounts \
      /proc/self/mountinfo /proc/version /etc/passwd /etc/hostname /etc/machine-id /sys/class/net/lo/address 2>/dev/null; true`;
    const exec = await cell.exec(bash(look));
    exec.closeStdin();
    expect((await finish(exec)).stdout).toBe('');
    await cell.dispose();
  });

  test('[MC-02] one cell cannot read the files of another', async () => {
    const [one, two] = [await makeCell(), await makeCell()];
    await new CellFiles(one).write([{ path: 'mine', content: Buffer.from('theirs to keep') }]);
    chmodSync(one.workdir, 0o777);
    const exec = await two.exec(bash(`cat ${one.workdir}/mine; touch ${one.workdir}/yours; true`));
    exec.closeStdin();
    expect((await finish(exec)).stdout).toBe('');
    expect((await new CellFiles(one).list('.')).map(({ name }) => name)).toEqual(['mine']);
    await Promise.all([one.dispose(), two.dispose()]);
  });
});

function makeCell(): Promise<Cell> {
  return place.driver.create({ name: 'walls', kind: 'run', limits: { ...DEFAULT_LIMITS, cpus: 2 } });
}

test('[SC-02] none of this has left a process', async () => {
  const ours = (): string[] =>
    listProcesses().filter((line) => line.includes(`${place.stateDirectory}-preload`));
  await waitFor('all are gone', () => ours().length === 0);
});
