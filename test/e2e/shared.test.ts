import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cellsOf } from '../support/footprint.ts';
import {
  countMarked,
  expectServes,
  makeMarker,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { SHARED_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

/** With 64 processes in a cell and 16 for each run. */
const MOST_AT_ONCE = 4;

/** Print stdin, the arguments with | between, and $GREETING. */
const SHOW_INPUTS: Readonly<Record<string, string>> = {
  python: "import os, sys\nprint(sys.stdin.read(), '|'.join(sys.argv[1:]), os.environ['GREETING'])",
  ruby: "puts [STDIN.read, ARGV.join('|'), ENV['GREETING']].join(' ')",
  javascript:
    "console.log(require('fs').readFileSync(0, 'utf8'), process.argv.slice(2).join('|'), process.env.GREETING)",
  typescript:
    "import fs from 'node:fs';\nconsole.log(fs.readFileSync(0, 'utf8'), process.argv.slice(2).join('|'), process.env.GREETING)",
  bash: 'words=$(cat); echo "$words $(IFS="|"; echo "$*") $GREETING"',
};

/** A program in that language that only runs a command of the shell. */
function inShell(language: string, command: string): string {
  const text = JSON.stringify(command);
  if (language === 'bash') return command;
  if (language === 'python') return `import os\nos.system(${text})`;
  if (language === 'ruby') return `system(${text})`;
  const module = "'node:child_process'";
  const take =
    language === 'typescript'
      ? `import { execSync } from ${module};`
      : `const { execSync } = require(${module});`;
  return `${take}\nexecSync(${text}, { stdio: 'inherit' });`;
}

describeEach(SHARED_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
  });
  afterEach(() => expectServes(server));
  afterAll(() => stopClean(server));

  async function cellsOfLanguage(language: string): Promise<string[]> {
    const cells = (await cellsOf(server)).filter(({ name }) => name.startsWith(`code-runner-${language}-`));
    return cells.map(({ id }) => id.slice(0, 12));
  }

  /** Starts bash programs that each say their number after two seconds; resolves when all of them run. */
  async function startNeighbours(count: number): Promise<Promise<string[]>[]> {
    const marker = makeMarker();
    const replies = Promise.all(
      Array.from({ length: count }, async (_, index) => {
        const { stdout, exit_code: exitCode } = await runCode(server, 'bash', {
          code: `sleep 2.${marker}; echo "neighbour $N"`,
          env: { N: String(index) },
        });
        return `${stdout.trim()} ${exitCode}`;
      }),
    );
    await waitFor('the neighbours run', () => countMarked(marker) >= count);
    // In a list, because a promise in a promise would be awaited with it.
    return [replies];
  }

  /** As many as could wait in the cell, one after the other. */
  async function expectRight(language: string): Promise<void> {
    for (let round = 0; round < MOST_AT_ONCE; round++) {
      const { stdout, stderr } = await runCode(server, language, inShell(language, `echo ${round}`));
      expect({ round, stdout, stderr }).toEqual({ round, stdout: `${round}\n`, stderr: '' });
    }
  }

  function unhurt(count: number): string[] {
    return Array.from({ length: count }, (_, index) => `neighbour ${index} 0`);
  }

  describe('one cell', () => {
    test('[CX-12, CX-03] runs at the same time share it, each with a file of its own', async () => {
      await settle(server);
      const replies = await Promise.all(
        Array.from({ length: 8 }, (_, index) =>
          runCode(server, 'python', { code: 'import os\nprint(os.environ["N"])', env: { N: String(index) } }),
        ),
      );
      expect(replies.map(({ stdout }) => stdout)).toEqual(replies.map((_, index) => `${index}\n`));
      expect(new Set(replies.map((reply) => reply.file_path)).size).toBe(8);
      expect([...new Set(replies.map((reply) => reply.container_id))]).toEqual(
        await cellsOfLanguage('python'),
      );
    });

    test('[CX-12, CX-09] it holds as many runs as it has processes for; the others wait', async () => {
      const code = 'touch /tmp/at.$$; sleep 0.4; ls /tmp/at.* | wc -l; rm /tmp/at.$$';
      const replies = await Promise.all(Array.from({ length: 9 }, () => runCode(server, 'bash', code)));
      const counts = replies.map(({ stdout }) => Number(stdout));
      expect(Math.max(...counts)).toBeGreaterThan(1);
      expect(Math.max(...counts)).toBeLessThanOrEqual(MOST_AT_ONCE);
    });

    test('[CX-03] the code of a run that has ended is not there any more', async () => {
      const earlier = [await runCode(server, 'bash', 'echo 1'), await runCode(server, 'bash', 'exit 1')];
      const { stdout, file_path: own } = await runCode(server, 'bash', 'echo /tmp/exec_*');
      const seen = stdout.trim().split(' ');
      expect(seen).toContain(own);
      for (const { file_path: path } of earlier) expect(seen).not.toContain(path);
    });

    test('[CX-07, CX-10] files and memory_mb get a run a cell of its own, which is gone afterwards', async () => {
      await settle(server);
      const shared = await cellsOfLanguage('python');
      const code = "import os\nprint(sorted(os.listdir('/tmp')))";
      const [withFile, withMemory] = await Promise.all([
        runCode(server, 'python', { code, files: [{ path: 'x', content: '' }] }),
        runCode(server, 'python', { code, memory_mb: 512 }),
      ]);
      const fileName = (path: string): string => path.slice('/tmp/'.length);
      expect(withFile.stdout).toBe(`['${fileName(withFile.file_path)}', 'x']\n`);
      expect(withMemory.stdout).toBe(`['${fileName(withMemory.file_path)}']\n`);
      const own = [withFile.container_id, withMemory.container_id];
      expect(new Set([...own, ...shared]).size).toBe(3);
      await settle(server);
      expect(await cellsOfLanguage('python')).toEqual(shared);
    });

    test.each(Object.keys(SHOW_INPUTS))(
      '[CX-07] stdin, arguments and variables reach the right run: %s',
      async (language) => {
        const replies = await Promise.all(
          ['a', 'b', 'c'].map((word) =>
            runCode(server, language, {
              code: SHOW_INPUTS[language],
              stdin: `in ${word} €`,
              args: [word, `${word} "2"`, ''],
              env: { GREETING: `$${word}` },
            }),
          ),
        );
        const told = replies.map(({ stdout, stderr }) => stdout + stderr);
        expect(told).toEqual(['a', 'b', 'c'].map((word) => `in ${word} € ${word}|${word} "2"| $${word}\n`));
        expect(new Set(replies.map((reply) => reply.container_id)).size).toBe(1);
      },
    );
  });

  describe('bad neighbours', () => {
    test('[CX-05] a timeout ends one run and leaves the others and the cell alone', async () => {
      await settle(server);
      const before = await cellsOfLanguage('bash');
      const [neighbours] = await startNeighbours(2);
      const marker = makeMarker();
      const code = `setsid sleep ${marker} & echo started; while :; do :; done`;
      const reply = await runCode(server, 'bash', { code, timeout_ms: 700 });
      expect(reply).toMatchObject({ stdout: 'started\n', exit_code: 124 });
      expect(countMarked(marker)).toBe(0);
      expect(await neighbours).toEqual(unhurt(2));
      expect(await cellsOfLanguage('bash')).toEqual(before);
    });

    test.each(['KILL', 'TERM', 'STOP'])(
      '[CX-08, CX-16] a run that sends SIG%s to all it can reach does not spoil the next',
      async (signal) => {
        const reply = await runCode(server, 'bash', `kill -${signal} -1; echo done`);
        expect(reply).toMatchObject({ stdout: 'done\n', exit_code: 0 });
        await expectRight('bash');
      },
    );

    test.each([
      ['kills its own supervisor', 'kill -9 $PPID'],
      ['empties /tmp', 'rm -rf /tmp/* /tmp/.[a-z]*'],
      ['takes the files of those who wait', 'chmod 000 /tmp/exec_*'],
      ['puts folders in their place', 'for file in /tmp/exec_*; do rm $file; mkdir $file; done'],
      ['closes /tmp', 'chmod 000 /tmp'],
    ])('[CX-08, CX-16] a run that %s does not spoil the next', async (_what, code) => {
      await settle(server);
      const reply = await runCode(server, 'bash', `${code}; echo done`);
      expect(reply).toMatchObject({ stdout: 'done\n', exit_code: 0 });
      await expectRight('bash');
    });

    test.each(Object.keys(SHOW_INPUTS))(
      '[CX-08] a waiting interpreter does not need the file that it was started on: %s',
      async (language) => {
        await settle(server);
        await runCode(server, language, inShell(language, 'rm -rf /tmp/*'));
        await expectRight(language);
      },
    );

    test('[SC-03, CX-09] a run cannot reach the agent or a supervisor', async () => {
      const code = `import glob, os
def line(path):
    # Others come and go meanwhile.
    try: return open(path, 'rb').read()
    except OSError: return b''
agents = [os.path.dirname(path) for path in glob.glob('/proc/[0-9]*/cmdline') if b'agent.pl' in line(path)]
print(len(agents) > 1)
for agent in agents:
    for name in ['fd/%d' % n for n in range(12)] + ['mem', 'maps', 'environ']:
        for mode in ('rb', 'wb'):
            try: open(f'{agent}/{name}', mode)
            except OSError: continue
            # One that was a copy of the agent when it was found has become the interpreter that waits for the next run.
            if b'agent.pl' in line(f'{agent}/cmdline'): print('open', agent, name, mode)`;
      expect(await runCode(server, 'python', code)).toMatchObject({ stdout: 'True\n', exit_code: 0 });
    });

    test.each(['KILL', 'STOP'])(
      '[CX-08, CX-16] neighbours that got SIG%s get the right answer',
      async (signal) => {
        const [neighbours] = await startNeighbours(3);
        const reply = await runCode(server, 'bash', `kill -${signal} -1; echo done`);
        expect(reply).toMatchObject({ stdout: 'done\n', exit_code: 0 });
        expect(await neighbours).toEqual(unhurt(3));
      },
    );

    test.each([
      [
        'that counts',
        'import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(1000)\n    n += 1\nexcept OSError: print(n, flush=True)',
      ],
      ['that never ends', 'import os\nwhile True:\n  try: os.fork()\n  except OSError: pass'],
    ])('[CX-09, CX-08] a fork bomb %s is a result', async (_what, code) => {
      const reply = await runCode(server, 'python', { code, timeout_ms: 2000 });
      expect([0, 124]).toContain(reply.exit_code);
      expect(['processes', 'wall_time']).toContain(reply.receipt.limit_hit);
      expect(Number(reply.stdout)).toBeLessThan(64);
    });

    test('[CX-09, CX-04] a memory hog is told as memory', async () => {
      const [neighbours] = await startNeighbours(2);
      const code = "x=$(head -c 400M /dev/zero | tr '\\0' x); echo ${#x}";
      const reply = await runCode(server, 'bash', code);
      expect(reply).toMatchObject({ exit_code: 137, receipt: { outcome: 'limit', limit_hit: 'memory' } });
      expect(reply.stderr).toContain('[Execution killed: out of memory, limit 256 MB]');
      // The kernel ends the largest, and who is killed by mistake runs again.
      expect(await neighbours).toEqual(unhurt(2));
    });

    test('[CX-09, CX-06] a flood of output ends at the limit and leaves the others alone', async () => {
      const [neighbours] = await startNeighbours(2);
      const reply = await runCode(server, 'bash', 'exec yes');
      expect(reply).toMatchObject({ exit_code: 137, receipt: { limit_hit: 'output' } });
      expect(await neighbours).toEqual(unhurt(2));
    });

    test.each([
      ['bytes', "open('/tmp/big', 'wb').write(bytes(63 << 20))"],
      ['files', "for n in range(16_000): open(f'/tmp/{n}', 'w').close()"],
    ])('[CX-08, CX-09] /tmp filled by one run with %s does not break later ones', async (_what, fill) => {
      await runCode(server, 'python', { code: fill, timeout_ms: 30_000 });
      const use = [
        "open('/tmp/mine', 'wb').write(bytes(8 << 20))",
        "for n in range(1000): open(f'/tmp/mine-{n}', 'w').close()",
        "print('whole')",
      ].join('\n');
      for (let round = 0; round < MOST_AT_ONCE; round++)
        expect(await runCode(server, 'python', use)).toMatchObject({ stdout: 'whole\n', exit_code: 0 });
    });

    test('[CX-09] shared memory that a run leaves behind does not stay', async () => {
      const leave = `import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
id = libc.shmget(4242, 8 << 20, 0o1666)
ctypes.memset(ctypes.c_void_p(libc.shmat(id, None, 0)), 1, 8 << 20)
print(id >= 0, len(open('/proc/sysvipc/shm').readlines()))`;
      const first = await runCode(server, 'python', leave);
      expect(first).toMatchObject({ stdout: 'True 2\n', exit_code: 0 });
      const look = "print(len(open('/proc/sysvipc/shm').readlines()))";
      const next = await runCode(server, 'python', look);
      expect(next).toMatchObject({ stdout: '1\n', container_id: first.container_id });
    });
  });
});
