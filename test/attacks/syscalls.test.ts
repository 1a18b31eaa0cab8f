import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

/** Calls (by their numbers on x64) that have led out of containers before, each with arguments that would do something. */
const CALLS: readonly [name: string, call: string][] = [
  ['unshare(NEWUSER)', 'syscall(272, 0x10000000)'],
  ['unshare(NEWNS)', 'syscall(272, 0x00020000)'],
  ['clone(NEWUSER)', 'syscall(56, 0x10000000 | 17, 0, 0, 0, 0)'],
  [
    'clone3(NEWUSER)',
    "syscall(435, ctypes.create_string_buffer((0x10000000).to_bytes(8, 'little') + bytes(80), 88), 88)",
  ],
  ['setns', "syscall(308, os.open('/proc/self/ns/net', 0), 0)"],
  ['mount', "syscall(165, b'none', b'/tmp', b'tmpfs', 0, 0)"],
  ['umount2', "syscall(166, b'/tmp', 2)"],
  ['open_tree', "syscall(428, -100, b'/tmp', 1)"],
  ['move_mount', "syscall(429, -100, b'/tmp', -100, b'/tmp', 0)"],
  ['fsopen', "syscall(430, b'tmpfs', 0)"],
  ['mount_setattr', "syscall(442, -100, b'/tmp', 0, ctypes.create_string_buffer(32), 32)"],
  ['chroot', "syscall(161, b'/tmp')"],
  ['pivot_root', "syscall(155, b'/tmp', b'/tmp')"],
  ['ptrace(TRACEME)', 'syscall(101, 0, 0, 0, 0)'],
  ['process_vm_readv', 'syscall(310, 1, 0, 0, 0, 0, 0)'],
  ['process_vm_writev', 'syscall(311, 1, 0, 0, 0, 0, 0)'],
  ['pidfd_getfd', 'syscall(438, syscall(434, 1, 0), 0, 0)'],
  ['kcmp', 'syscall(312, os.getpid(), os.getpid(), 0, 0, 0)'],
  ['add_key', "syscall(248, b'user', b'x', b'y', 1, -3)"],
  ['request_key', "syscall(249, b'user', b'x', 0, -3)"],
  ['keyctl', 'syscall(250, 0, -3, 1)'],
  ['bpf', 'syscall(321, 0, ctypes.create_string_buffer(120), 120)'],
  ['perf_event_open', 'syscall(298, ctypes.create_string_buffer(120), 0, -1, -1, 0)'],
  ['userfaultfd', 'syscall(323, 1)'],
  ['io_uring_setup', 'syscall(425, 4, ctypes.create_string_buffer(120))'],
  ['open_by_handle_at', 'syscall(304, 3, ctypes.create_string_buffer(128), 0)'],
  [
    'name_to_handle_at',
    "syscall(303, -100, b'/tmp', ctypes.create_string_buffer(128), ctypes.create_string_buffer(8), 0)",
  ],
  ['quotactl', 'syscall(179, 0, 0, 0, 0)'],
  ['swapon', "syscall(167, b'/tmp/x', 0)"],
  ['reboot', 'syscall(169, 0xfee1dead, 672274793, 0, 0)'],
  ['kexec_load', 'syscall(246, 0, 0, 0, 0)'],
  ['init_module', "syscall(175, b'', 0, b'')"],
  ['finit_module', "syscall(313, 0, b'', 0)"],
  ['delete_module', "syscall(176, b'x', 0)"],
  ['syslog', 'syscall(103, 3, ctypes.create_string_buffer(64), 64)'],
  ['acct', "syscall(163, b'/tmp/x')"],
  ['sethostname', "syscall(170, b'x', 1)"],
  ['settimeofday', 'syscall(164, ctypes.create_string_buffer(16), 0)'],
  ['clock_settime', 'syscall(227, 0, ctypes.create_string_buffer(16))'],
  ['iopl', 'syscall(172, 3)'],
  ['ioperm', 'syscall(173, 0x70, 1, 1)'],
  ['modify_ldt', 'syscall(154, 0, ctypes.create_string_buffer(64), 64)'],
  ['personality(ADDR_NO_RANDOMIZE)', 'syscall(135, 0x0040000)'],
  ['vhangup', 'syscall(153)'],
  ['move_pages', 'syscall(279, 1, 0, 0, 0, 0, 0)'],
  ['fanotify_init', 'syscall(300, 0, 0)'],
  ['lookup_dcookie', 'syscall(212, 0, 0, 0)'],
  ['uselib', "syscall(134, b'/tmp/x')"],
  ['memfd_secret', 'syscall(447, 0)'],
];

const PRELUDE = `import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def syscall(*arguments):
    ctypes.set_errno(0)
    return libc.syscall(*[ctypes.c_long(each) if isinstance(each, int) else each for each in arguments])
def tell(call):
    result = call()
    print(result, ctypes.get_errno())
`;
const EPERM = 1;
const ENOSYS = 38;

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way, languages: ['bash', 'javascript', 'python', 'ruby'] });
  });
  afterAll(() => stopClean(server));

  describe('system calls', () => {
    test.skipIf(process.arch !== 'x64')(
      '[SC-03] a call that is allowed works, so that refusals below mean something',
      async () => {
        const { stdout } = await runCode(
          server,
          'python',
          `${PRELUDE}tell(lambda: syscall(39) == os.getpid())`,
        );
        expect(stdout).toBe('True 0\n');
      },
    );

    test.skipIf(process.arch !== 'x64')(
      '[SC-03, CX-09] every call that leads out is refused by the filter',
      async () => {
        const lines = CALLS.map(([, call]) => `tell(lambda: ${call})`);
        const { stdout, stderr } = await runCode(server, 'python', PRELUDE + lines.join('\n'));
        expect(stderr).toBe('');
        const told = stdout.trim().split('\n');
        const open = CALLS.filter((_, index) => ![`-1 ${EPERM}`, `-1 ${ENOSYS}`].includes(told[index] ?? ''));
        expect(open.map(([name]) => name)).toEqual([]);
        expect(told).toHaveLength(CALLS.length);
      },
    );

    test.skipIf(process.arch !== 'x64')('[SC-03] 32-bit calls do not slip past the filter', async () => {
      // mov eax, 20 (getpid of i386); int 0x80; ret. The program may also be killed for trying.
      const code = `${PRELUDE}import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex('b814000000cd80c3'))
function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print(function() == os.getpid(), flush=True)`;
      const { stdout } = await runCode(server, 'python', code);
      expect(stdout).not.toContain('True');
    });

    test.skipIf(process.arch !== 'x64')('[SC-03] x32 calls do not slip past the filter', async () => {
      const code = `${PRELUDE}print(syscall(0x40000000 | 39) == os.getpid(), flush=True)`;
      expect((await runCode(server, 'python', code)).stdout).not.toContain('True');
    });

    test.each([
      ['AF_VSOCK', 40],
      ['AF_ALG', 38],
      ['AF_PACKET', 17],
      ['AF_BLUETOOTH', 31],
      ['AF_KEY', 15],
      ['AF_TIPC', 30],
      ['AF_XDP', 44],
      ['AF_CAN', 29],
    ])('[SC-03, CX-09] sockets of %s are refused', async (_name, family) => {
      const code = `import socket
for kind in (1, 2, 3, 5):
    try: socket.socket(${family}, kind, 0); print('open')
    except OSError as error: print(error.errno)`;
      expect((await runCode(server, 'python', code)).stdout).toBe('1\n'.repeat(4));
    });

    test('[SC-03] raw sockets are refused', async () => {
      const code = `import socket
for family in (2, 10):
    try: socket.socket(family, 3, 1); print('open')
    except OSError as error: print(error.errno)`;
      expect((await runCode(server, 'python', code)).stdout).toBe('1\n1\n');
    });

    test('[SC-03] terminals: no character can be pushed into one', async () => {
      const code = `import fcntl, os
for descriptor in (0, 1, 2):
    try: fcntl.ioctl(descriptor, 0x5412, b'x'); print('pushed')
    except OSError: print('refused')
try: os.open('/dev/tty', os.O_RDWR); print('tty')
except OSError: print('refused')`;
      expect((await runCode(server, 'python', code)).stdout).toBe('refused\n'.repeat(4));
    });

    test.each([
      [
        'bash',
        'unshare -Ur id; unshare -m true; mount -t tmpfs none /tmp; chroot /tmp; nsenter -t 1 -n true; echo end',
      ],
      [
        'ruby',
        "system('unshare', '-Ur', 'id'); begin; Dir.chroot('/tmp'); puts 'out'; rescue SystemCallError; end; puts 'end'",
      ],
      [
        'javascript',
        "const { spawnSync } = require('child_process'); process.stdout.write(String(spawnSync('unshare', ['-Ur', 'id']).stdout)); try { process.setuid(0); console.log('root') } catch {} console.log('end')",
      ],
    ])('[SC-03] the usual programs get nowhere: %s', async (language, code) => {
      expect(await runCode(server, language, code)).toMatchObject({ stdout: 'end\n', exit_code: 0 });
      await expectServes(server);
    });
  });
});
