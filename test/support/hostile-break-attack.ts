import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import type { Plan } from './hostile-look-attack.ts';

const CALLS = `
import ctypes, json, os, resource, socket, stat
libc = ctypes.CDLL(None, use_errno=True)
out = {}
def call(name, function, *args):
    ctypes.set_errno(0)
    try:
        result = function(*args)
        out[name] = ctypes.get_errno() or 1 if isinstance(result, int) and result < 0 else 0
    except (OSError, ValueError) as error:
        out[name] = getattr(error, 'errno', None) or 1
for at in (b'/tmp', b'/workspace', b'/workspace/.git', b'/git', b'/usr'):
    call('mount on ' + at.decode(), libc.mount, b'none', at, b'tmpfs', 0, None)
    call('bind on ' + at.decode(), libc.mount, b'/tmp', at, None, 4096, None)
    call('remount ' + at.decode(), libc.mount, None, at, None, 32, None)
    call('umount ' + at.decode(), libc.umount2, at, 2)
for name, flag in (('user', 0x10000000), ('mnt', 0x20000), ('net', 0x40000000), ('pid', 0x20000000), ('uts', 0x4000000)):
    call('unshare ' + name, libc.unshare, flag)
for name in ('mnt', 'net', 'user', 'pid'):
    call('setns ' + name, lambda: libc.setns(os.open('/proc/1/ns/' + name, os.O_RDONLY), 0))
call('ptrace', libc.ptrace, 16, 1, 0, 0)
call('memory of 1', lambda: os.open('/proc/1/mem', os.O_RDWR))
call('environment of 1', lambda: open('/proc/1/environ', 'rb').read())
call('files of 1', lambda: os.listdir('/proc/1/fd'))
call('root of 1', lambda: os.listdir('/proc/1/root'))
call('disk', lambda: os.mknod('/tmp/disk', 0o600 | stat.S_IFBLK, os.makedev(254, 0)))
call('memory device', lambda: os.mknod('/tmp/mem', 0o600 | stat.S_IFCHR, os.makedev(1, 1)))
call('setuid', os.setuid, 0)
call('setgid', os.setgid, 0)
call('setresuid', os.setresuid, 0, 0, 0)
call('setgroups', os.setgroups, [0])
call('chroot', os.chroot, '/tmp')
call('chown', os.chown, '/workspace', 0, 0)
call('sethostname', lambda: socket.sethostname('evil'))
for name in ('RLIMIT_NOFILE', 'RLIMIT_NPROC', 'RLIMIT_CORE'):
    hard = resource.getrlimit(getattr(resource, name))[1]
    if hard != resource.RLIM_INFINITY:
        call('raise ' + name, resource.setrlimit, getattr(resource, name), (hard + 1, hard + 1))
call('nice', os.nice, -5)
call('packets', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
call('raw', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
call('vsock', lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM))
for path in ('/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname', '/dev/kmsg', '/dev/mem',
             '/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/pids.max', '/proc/1/oom_score_adj'):
    call('write ' + path, lambda: os.open(path, os.O_WRONLY))
for name in ('mount', 'su', 'sudo', 'newuidmap', 'passwd', 'chsh'):
    pass
print(json.dumps(out))
`;

/** Numbers of errors; 0 for what succeeded. */
export function breakOut(): Record<string, number> {
  const { stdout, stderr } = spawnSync('python3', ['-c', CALLS], { encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as Record<string, number>;
}

/** What could be changed. */
export function writeEverywhere({ precious, canary }: Plan): string[] {
  const done: string[] = [];
  const attempt = (what: string, act: () => void): void => {
    try {
      act();
      done.push(what);
    } catch {
      // As it should be.
    }
  };
  const system = [
    '',
    '/etc',
    '/usr',
    '/usr/bin',
    '/opt/hotcell/guest',
    '/run/hotcell',
    '/repo',
    '/repo/objects',
  ];
  for (const folder of [...system, canary, ...precious]) {
    attempt(`new ${folder}`, () => writeFileSync(`${folder}/evil`, 'evil'));
    attempt(`make ${folder}`, () => mkdirSync(`${folder}/evil`, { recursive: true }));
    attempt(`link ${folder}`, () => symlinkSync('/', `${folder}/evil`));
    attempt(`append ${folder}`, () => appendFileSync(folder, 'evil'));
    attempt(`mode ${folder}`, () => chmodSync(folder, 0o777));
    attempt(`remove ${folder}`, () => rmSync(folder));
  }
  for (const name of readFolder('/run/hotcell'))
    attempt(`open ${name}`, () =>
      closeSync(openSync(`/run/hotcell/${name}`, constants.O_RDWR | constants.O_NONBLOCK)),
    );
  const pointer = '/workspace/.git';
  writeFileSync('/workspace/.state/pointer', 'gitdir: /tmp/evil\n');
  attempt('write pointer', () => writeFileSync(pointer, 'gitdir: /tmp/evil\n'));
  attempt('remove pointer', () => unlinkSync(pointer));
  attempt('move pointer', () => renameSync(pointer, '/workspace/.state/old'));
  attempt('replace pointer', () => renameSync('/workspace/.state/pointer', pointer));
  attempt('mode pointer', () => chmodSync(pointer, 0o666));
  attempt('move workspace', () => renameSync('/workspace', '/tmp/workspace'));
  attempt('remove workspace', () => rmSync('/workspace', { recursive: false }));
  attempt('changed pointer', () => {
    if (readFileSync(pointer, 'utf8') === 'gitdir: /git\n') throw new Error('as it was');
  });
  return done;
}

function readFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
