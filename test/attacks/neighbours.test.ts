import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { countMarked, makeMarker } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const name = `n${randomUUID().slice(0, 8)}`;

/** Leaves something in every place that two programs of one machine can meet in, and says so on its standard error. */
const RESIDENT = (marker: string): string => `import ctypes, fcntl, os, socket, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
open('/tmp/${name}', 'w').write('resident')
open('/dev/shm/${name}', 'w').write('resident')
print(libc.shmget(4242, 4096, 0o1666) >= 0, libc.msgget(4242, 0o1666) >= 0, libc.semget(4242, 1, 0o1666) >= 0)
queue = ctypes.CDLL('librt.so.1').mq_open(b'/${name}', os.O_CREAT | os.O_RDWR, 0o666, None)
listener = socket.socket(socket.AF_UNIX); listener.bind('\\0${name}'); listener.listen()
inet = socket.socket(); inet.bind(('127.0.0.1', 4242)); inet.listen()
lock = os.open('/usr/bin/env', os.O_RDONLY); fcntl.flock(lock, fcntl.LOCK_EX)
child = subprocess.Popen(['sleep', '${marker}'])
print('queue', queue >= 0, flush=True)
time.sleep(4)
print('child', child.poll(), 'file', open('/tmp/${name}').read())`;

/** Looks for all of that; prints what it finds. */
const VISITOR = (marker: string): string => `import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
found = [path for path in ('/tmp/${name}', '/dev/shm/${name}') if os.path.exists(path)]
for call, arguments in ((libc.shmget, (4242, 0, 0)), (libc.msgget, (4242, 0)), (libc.semget, (4242, 0, 0))):
    if call(*arguments) >= 0: found.append(call.__name__)
for line in ('shm', 'msg', 'sem'):
    if len(open('/proc/sysvipc/' + line).readlines()) > 1: found.append('/proc/sysvipc/' + line)
if ctypes.CDLL('librt.so.1').mq_open(b'/${name}', os.O_RDWR) >= 0: found.append('queue')
for address in ('\\0${name}', ('127.0.0.1', 4242)):
    try: socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET).connect(address); found.append(address)
    except OSError: pass
if '${name}' in open('/proc/net/unix').read(): found.append('/proc/net/unix')
for pid in filter(str.isdigit, os.listdir('/proc')):
    if '${marker}'.encode() in open(f'/proc/{pid}/cmdline', 'rb').read(): found.append(pid)
print(found)
for pid in range(2, 65536):
    if pid == os.getpid(): continue
    try: os.kill(pid, 9); print('killed', pid)
    except OSError: pass`;

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way, languages: ['bash', 'python', 'ruby'] });
  });
  afterAll(() => stopClean(server));

  describe('neighbours', () => {
    test('[CX-12] two runs at the same time have nothing in common', async () => {
      const marker = makeMarker();
      const resident = runCode(server, 'python', RESIDENT(marker));
      await waitFor('the resident has settled', () => countMarked(marker) > 0);
      const visitors = await Promise.all([
        runCode(server, 'python', VISITOR(marker)),
        runCode(server, 'python', VISITOR(marker)),
      ]);
      const { stdout, exit_code: exitCode } = await resident;
      expect(visitors.map((visitor) => visitor.stdout)).toEqual(['[]\n', '[]\n']);
      // The resident was there all the time, and nobody has touched what is its own.
      expect({ stdout, exitCode }).toEqual({
        stdout: 'True True True\nqueue True\nchild None file resident\n',
        exitCode: 0,
      });
    });

    test('[CX-12] nothing of a finished run is found by the next', async () => {
      const marker = makeMarker();
      await runCode(server, 'python', RESIDENT(marker).replace('time.sleep(4)', ''));
      expect(await runCode(server, 'python', VISITOR(marker))).toMatchObject({
        stdout: '[]\n',
        exit_code: 0,
      });
    });

    // Files of the host that all cells see are one inode; a lock on one is a message. It is the known limit of sharing /usr.
    test('[CX-12] a lock on a shared file does not stop anybody', async () => {
      const holder = runCode(server, 'bash', 'exec 3</usr/bin/env; flock 3; echo held >&2; sleep 2');
      const other = await runCode(server, 'bash', 'env true && echo runs');
      expect(other).toMatchObject({ stdout: 'runs\n', exit_code: 0 });
      expect((await holder).exit_code).toBe(0);
    });

    test('[CX-12] two languages at the same time do not see each other either', async () => {
      const marker = makeMarker();
      const resident = runCode(server, 'bash', `sleep ${marker} & sleep 2; kill -0 $! && echo unhurt`);
      await waitFor('the resident runs', () => countMarked(marker) > 0);
      const look =
        "puts Dir['/proc/[0-9]*/cmdline'].map { |path| File.read(path) }.join.include?('sleep')\nProcess.kill('KILL', -1)";
      expect((await runCode(server, 'ruby', look)).stdout).toBe('false\n');
      expect((await resident).stdout).toBe('unhurt\n');
      await expectServes(server);
    });

    test('[CX-12] many at once each get their own answer', async () => {
      const numbers = Array.from({ length: 24 }, (_, index) => index);
      const replies = await Promise.all(
        numbers.map((number) =>
          runCode(server, number % 2 === 0 ? 'python' : 'bash', {
            code:
              number % 2 === 0
                ? "import os\nprint(os.environ['N'], input())"
                : 'read -r line; echo "$N $line"',
            env: { N: String(number) },
            stdin: `line ${number}\n`,
          }),
        ),
      );
      expect(replies.map((reply) => reply.stdout)).toEqual(
        numbers.map((number) => `${number} line ${number}\n`),
      );
    });
  });
});
