import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, readResidentBytes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const MiB = 1024 * 1024;
const ENOSPC = 28;

describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way, languages: ['bash', 'javascript', 'python'] });
  });
  afterEach(() => expectServes(server));
  afterAll(() => stopClean(server));

  describe('disk', () => {
    test('[CX-09] /tmp takes 64 MB and then says ENOSPC', async () => {
      const code = `total = 0
try:
    with open('/tmp/x', 'wb', buffering=0) as file:
        while True: total += file.write(bytes(1 << 16))
except OSError as error:
    print(total, error.errno)`;
      const reply = await runCode(server, 'python', code);
      const [total = 0, errno] = reply.stdout.split(' ').map(Number);
      expect(errno).toBe(ENOSPC);
      expect(total).toBeGreaterThan(60 * MiB);
      expect(total).toBeLessThanOrEqual(64 * MiB);
    });

    test('[CX-09] fallocate is refused beyond 64 MB', async () => {
      const reply = await runCode(
        server,
        'bash',
        'fallocate -l 70M /tmp/x; echo $?; df --output=size /tmp | tail -1',
      );
      expect(reply.stderr).toContain('No space left on device');
      expect(reply.stdout.split('\n').map(Number).slice(0, 2)).toEqual([1, 65_536]);
    });

    test.each([
      ['files', "open(f'/tmp/{count}', 'w').close()"],
      ['folders', "os.mkdir(f'/tmp/{count}')"],
      ['links', "os.symlink('x', f'/tmp/{count}')"],
      ['FIFOs', "os.mkfifo(f'/tmp/{count}')"],
    ])('[CX-09] a million %s end with ENOSPC', async (_kind, make) => {
      const code = `import os
count = 0
try:
    while count < 1_000_000:
        ${make}
        count += 1
except OSError as error:
    print(count, error.errno)`;
      const reply = await runCode(server, 'python', { code, timeout_ms: 30_000 });
      const [count, errno] = reply.stdout.split(' ').map(Number);
      expect(errno).toBe(ENOSPC);
      expect(count).toBeLessThanOrEqual(16_384);
    });

    test('[CX-09] a sparse file of 1 PiB takes no place', async () => {
      const code = `import os
try:
    os.truncate(os.open('/tmp/x', os.O_CREAT | os.O_RDWR), 1 << 50)
except OSError: pass
print(os.stat('/tmp/x').st_blocks)`;
      const reply = await runCode(server, 'python', code);
      expect(reply).toMatchObject({ stdout: '0\n', exit_code: 0 });
    });

    test('[CX-09] a tree ten thousand folders deep does not stop the clean-up', async () => {
      const code = "import os\nfor _ in range(10_000):\n  os.mkdir('d'); os.chdir('d')\nprint('deep')";
      expect(await runCode(server, 'python', { code, timeout_ms: 30_000 })).toMatchObject({
        stdout: 'deep\n',
      });
    });

    test.each([
      ['files', "held.append(os.open('/dev/null', os.O_RDONLY))"],
      ['sockets', 'held.append(socket.socket())'],
      ['pipes', 'held.append(os.pipe())'],
    ])('[CX-09] open %s end with EMFILE', async (_kind, open) => {
      const code = `import os, socket
held = []
try:
    while len(held) < 100_000: ${open}
except OSError as error:
    print(len(held), error.errno)`;
      const [count, errno] = (await runCode(server, 'python', code)).stdout.split(' ').map(Number);
      expect(errno).toBe(24);
      expect(count).toBeLessThan(1024);
    });

    test('[CX-09] the limit of open files cannot be raised from inside', async () => {
      const reply = await runCode(server, 'bash', 'ulimit -n 2048; ulimit -n; ulimit -Hn');
      expect(reply.stdout).toBe('1024\n1024\n');
    });
  });

  describe('output', () => {
    const FLOODS: readonly [name: string, language: string, code: string][] = [
      ['stdout', 'bash', 'exec yes'],
      ['stderr', 'bash', 'exec yes >&2'],
      ['both', 'bash', 'yes & yes >&2 & wait'],
      ['no line breaks', 'python', "import os\nwhile True: os.write(1, b'x' * 65536)"],
      [
        'sixty writers',
        'python',
        "import os\nfor _ in range(5): os.fork()\nwhile True: os.write(1, b'x' * 65536)",
      ],
      ['synchronous javascript', 'javascript', "for (;;) require('fs').writeSync(1, 'x'.repeat(65536))"],
    ];
    test.each(FLOODS)(
      '[CX-09, CX-06] %s: %s is killed at 16 MB and the server does not grow',
      async (_name, language, code) => {
        await expectServes(server);
        const before = await readResidentBytes(server);
        const reply = await runCode(server, language, code);
        const after = await readResidentBytes(server);
        expect(reply).toMatchObject({ exit_code: 137, receipt: { outcome: 'limit', limit_hit: 'output' } });
        expect(reply.stderr).toContain('[Execution killed: more than 16384 KB of output]');
        expect(reply.stdout.length + reply.stderr.length).toBeLessThan(21_000);
        // The program writes on until the kill has reached it; how much depends on the load, but it must end.
        expect(reply.receipt.stdout_bytes + reply.receipt.stderr_bytes).toBeLessThan(256 * MiB);
        expect(after - before).toBeLessThan(64 * MiB);
      },
    );

    test('[CX-09] a flood into the status FIFO neither grows nor blocks the server', async () => {
      const flood = "exec 3>/run/hotcell/status; while :; do printf '%065536d' 0 >&3; done";
      const before = await readResidentBytes(server);
      const pending = runCode(server, 'bash', { code: flood, timeout_ms: 4000 });
      for (let round = 0; round < 5; round++) await expectServes(server);
      expect(await pending).toMatchObject({ exit_code: 124 });
      expect((await readResidentBytes(server)) - before).toBeLessThan(64 * MiB);
    });

    test('[CX-09] programs that drip hold nobody else', async () => {
      const drip =
        "import os, time\nend = time.time() + 2\nwhile time.time() < end:\n  os.write(1, b'.'); time.sleep(0.001)";
      const drips = Array.from({ length: 6 }, () =>
        runCode(server, 'python', { code: drip, timeout_ms: 20_000 }),
      );
      await expectServes(server);
      for (const reply of await Promise.all(drips)) expect(reply.stdout).toMatch(/^\.{5,}/);
    });

    test('[CX-09] a program that never reads its input does not hold the answer', async () => {
      const reply = await runCode(server, 'bash', { code: 'exec <&-; echo done', stdin: 'x'.repeat(90_000) });
      expect(reply).toMatchObject({ stdout: 'done\n', exit_code: 0 });
    });
  });

  describe('signals', () => {
    // The signal that a shell handles even as the first process; see the next test.
    const INTERRUPT = 2;
    const numbers = Array.from({ length: 64 }, (_, index) => index + 1).filter(
      (number) => number !== INTERRUPT,
    );
    test.each([
      [
        'python',
        `import os\nfor number in [${numbers.join()}]:\n  try: os.kill(1, number)\n  except OSError: pass\nprint('alive')`,
      ],
      ['bash', `for n in ${numbers.join(' ')}; do kill -$n 1 2>/dev/null; done; echo alive`],
    ])('[CX-09] the first process of the cell cannot be hurt: %s', async (language, code) => {
      expect(await runCode(server, language, code)).toMatchObject({ stdout: 'alive\n', exit_code: 0 });
    });

    test('[CX-09, CX-04] an interrupt of the first process is no failure of ours', async () => {
      expect((await server.execute('bash', { code: 'kill -INT 1; echo alive' })).status).toBe(200);
    });

    test('[CX-09] kill -1 reaches nobody but the program’s own', async () => {
      const other = runCode(server, 'python', "import time\ntime.sleep(2)\nprint('unhurt')");
      await runCode(server, 'bash', 'for n in 9 15 19; do kill -$n -1; done');
      expect(await other).toMatchObject({ stdout: 'unhurt\n', exit_code: 0 });
    });

    test('[CX-09, CX-05] a program that stops itself ends with the timeout', async () => {
      const reply = await runCode(server, 'bash', { code: 'kill -STOP $$', timeout_ms: 500 });
      expect(reply).toMatchObject({ exit_code: 124 });
    });

    test('[CX-09] a storm of signals between processes ends with the timeout', async () => {
      const code = `import os, signal
for number in (10, 12): signal.signal(number, lambda *_: None)
for _ in range(5): os.fork()
while True: os.kill(0, 10); os.kill(0, 12)`;
      expect(await runCode(server, 'python', { code, timeout_ms: 1500 })).toMatchObject({
        exit_code: expect.toBeOneOf([124, 138, 140]),
      });
    });
  });
});
