import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectServes, runCode, startServer, stopClean } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const MEMORY_WORDS = '[Execution killed: out of memory, limit 256 MB]';

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
  });
  afterEach(() => expectServes(server));
  afterAll(() => stopClean(server));

  describe('processes', () => {
    /** Each attack says how many it got; the limit is 64 for everything in the cell. */
    const BOMBS: Record<string, [language: string, code: string]> = {
      'python forks that stay': [
        'python',
        `import os, time
count = 0
while True:
    try:
        if os.fork() == 0: time.sleep(1000)
        count += 1
    except OSError as error:
        print(count, error.errno, flush=True)
        os._exit(0)`,
      ],
      'python threads': [
        'python',
        `import os, threading, time
count = 0
while True:
    try:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
    except RuntimeError:
        print(count, 11, flush=True)
        os._exit(0)`,
      ],
      'python zombies': [
        'python',
        `import os
count = 0
while True:
    try:
        if os.fork() == 0: os._exit(0)
        count += 1
    except OSError as error:
        print(count, error.errno, flush=True)
        os._exit(0)`,
      ],
    };
    test.each(Object.keys(BOMBS))('[CX-09] %s reach the limit of 64 and no further', async (name) => {
      const [language, code] = BOMBS[name] ?? ['', ''];
      const reply = await runCode(server, language, code);
      const [count, errno] = reply.stdout.trim().split(' ').map(Number);
      // It really forked, and the kernel said EAGAIN.
      expect(count).toBeGreaterThan(40);
      expect(count).toBeLessThanOrEqual(64);
      expect(errno).toBe(11);
      expect(reply.receipt.limit_hit).toBe('processes');
    });

    test.each([
      ['bash', ':(){ :|:& };:; while :; do :; done'],
      ['python', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'],
      [
        'javascript',
        "for (;;) try { require('child_process').spawn(process.execPath, [__filename]) } catch {}",
      ],
    ])('[CX-09, CX-05] a fork bomb that never ends dies of the timeout: %s', async (language, code) => {
      const reply = await runCode(server, language, { code, timeout_ms: 2000 });
      // Node needs much memory for each process; either limit may be the one that stops it.
      expect(['processes', 'wall_time', 'memory']).toContain(reply.receipt.limit_hit);
      expect([124, 137]).toContain(reply.exit_code);
    });

    test('[CX-09] two fork bombs at once do not take each other’s share', async () => {
      const [, code] = BOMBS['python forks that stay'] ?? ['', ''];
      const replies = await Promise.all([code, code, code].map((each) => runCode(server, 'python', each)));
      for (const { stdout } of replies) expect(Number(stdout.split(' ')[0])).toBeGreaterThan(40);
    });
  });

  describe('memory', () => {
    const BOMBS: readonly [name: string, language: string, code: string][] = [
      ['one allocation', 'python', 'x = bytearray(400 << 20)'],
      ['step by step', 'python', 'x = []\nwhile True: x.append(bytearray(1 << 20))'],
      [
        'mmap',
        'python',
        'import mmap\nm = mmap.mmap(-1, 1 << 30)\nfor i in range(0, 1 << 30, 4096): m[i] = 1',
      ],
      ['memfd', 'python', "import os\nf = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))"],
      ['bash string', 'bash', "x=$(head -c 400M /dev/zero | tr '\\0' x); echo ${#x}"],
      ['ruby string', 'ruby', "x = 'x' * (400 << 20)"],
      ['javascript buffers', 'javascript', 'const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1));'],
      [
        'typescript buffers',
        'typescript',
        'const x: Buffer[] = []; for (;;) x.push(Buffer.alloc(1 << 20, 1));',
      ],
    ];
    test.each(BOMBS)(
      '[CX-09, CX-04] %s (%s) is told as memory, not as a plain 137',
      async (_name, language, code) => {
        const reply = await runCode(server, language, `${code}\n`);
        expect(reply).toMatchObject({ exit_code: 137, receipt: { outcome: 'limit', limit_hit: 'memory' } });
        expect(reply.stderr).toContain(MEMORY_WORDS);
        expect(reply.memory_used_mb).toBeGreaterThan(200);
        expect(reply.memory_used_mb).toBeLessThanOrEqual(256);
      },
    );

    test('[CX-09] many processes share one limit', async () => {
      const code = `import os
for _ in range(20):
    if os.fork() == 0:
        x = bytearray(30 << 20)
        os.write(1, b'.')
        __import__('time').sleep(1000)
statuses = [os.wait()[1] for _ in range(3)]
print(statuses)
os._exit(5)`;
      // Long, because a cell at its limit spends its half core on looking for memory.
      const reply = await runCode(server, 'python', { code, timeout_ms: 60_000 });
      expect(reply.receipt.limit_hit).toBe('memory');
      // 256 MB hold eight of them; the others were killed.
      expect(reply.stdout.split('.').length - 1).toBeLessThan(20);
      expect(reply.memory_used_mb).toBeLessThanOrEqual(256);
    });

    test('[CX-09] files in /tmp count as memory', async () => {
      const code =
        "x = open('/tmp/x', 'wb')\nfor _ in range(60): x.write(bytes(1 << 20)); x.flush()\nprint('whole')";
      const reply = await runCode(server, 'python', { code, memory_mb: 32 });
      expect(reply).toMatchObject({ stdout: '', exit_code: 137, receipt: { limit_hit: 'memory' } });
      expect(reply.stderr).toContain('out of memory, limit 32 MB');
    });

    test('[CX-09] output so far comes back', async () => {
      const reply = await runCode(server, 'python', "print('before', flush=True)\nx = bytearray(400 << 20)");
      expect(reply).toMatchObject({ stdout: 'before\n', receipt: { limit_hit: 'memory' } });
    });

    test('[CX-09] a program that survives the death of a child goes on', async () => {
      const code = 'import os\nif os.fork() == 0: x = bytearray(400 << 20)\nprint(os.wait()[1] & 127)';
      const reply = await runCode(server, 'python', code);
      expect(reply).toMatchObject({
        stdout: '9\n',
        exit_code: 0,
        receipt: { outcome: 'exited', limit_hit: 'memory' },
      });
    });
  });

  describe('CPU', () => {
    test.each([
      [
        'python',
        'import os, time\nend = time.time() + 3\nfor _ in range(3): os.fork()\nwhile time.time() < end: pass',
      ],
      ['bash', 'for i in 1 2 3 4; do while (( SECONDS < 3 )); do :; done & done; wait'],
    ])('[CX-09] a hog of many processes gets half a core: %s', async (language, code) => {
      const { receipt } = await runCode(server, language, code);
      const share = receipt.cpu_time_ms / receipt.wall_time_ms;
      expect(receipt.wall_time_ms).toBeGreaterThan(1900);
      // Quotas are handed out by the tenth of a second, so a little more than the share may be used at the edges.
      expect(share).toBeLessThan(0.6);
      expect(share).toBeGreaterThan(0.02);
    });
  });
});
