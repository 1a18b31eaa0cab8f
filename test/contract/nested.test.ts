import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cell } from '../../src/core/cell.ts';
import { finish, NestSite, type OpenNest } from '../support/nest-site.ts';
import { findTraces, waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { countMarked } from '../support/session-work.ts';

const MiB = 1024 * 1024;
const site = new NestSite();
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  expect(findTraces(site.stateDirectory)).toEqual({ processes: [], cgroups: [], mounts: [], folders: [] });
});

/** One whose runs are executed, and one whose runs are forked from an interpreter. */
const nests: Record<'bash' | 'python', OpenNest> = Object.create(null) as never;
beforeAll(async () => {
  nests.bash = await site.open('bash', { slots: 2 });
  nests.python = await site.open('python', { slots: 2 });
});

async function ready(cell: Cell): Promise<Cell> {
  for await (const event of cell.main?.events ?? []) if (event.type === 'stdout') return cell;
  throw new Error('it did not get ready');
}

describe('a run in a slot', () => {
  test('[CX-12] has an id of its own that never comes again', async () => {
    const ids = new Set<string>();
    for (let n = 0; n < 20; n++) ids.add((await nests.bash.run('true', n % 2)).id);
    expect(ids.size).toBe(20);
  });

  test('[SC-03] finds nothing that another one left, in files, memory or processes', async () => {
    const secret = makeMarker();
    const leave = `echo ${secret} >/tmp/left; (setsid sleep ${secret} &) ; mkdir /dev/shm/x; echo $$`;
    expect(await nests.bash.run(leave)).toMatchObject({ outcome: { kind: 'exited', code: 0 } });
    await waitFor('the one it left is gone', () => countMarked(secret) === 0);
    const look = 'ls -A /tmp /dev/shm; ls -d /proc/[0-9]*; ipcs -a 2>/dev/null | grep -c 0x || true';
    const { stdout } = await nests.bash.run(look);
    expect(stdout).not.toContain(secret);
    expect(stdout).toMatch(/\/proc\/1\n\/proc\/2\n/);
    const search = `import os\nwords = b"${secret.slice(0, 3)}" + b"${secret.slice(3)}"\nfound = 0\nfor line in open("/proc/self/maps"):\n    a, b = (int(x, 16) for x in line.split()[0].split("-"))\n    if "r" not in line.split()[1] or "[v" in line: continue\n    try:\n        with open("/proc/self/mem", "rb") as mem:\n            mem.seek(a); found += mem.read(b - a).count(words) if b - a < 1 << 30 else 0\n    except (OSError, ValueError, OverflowError): pass\nprint(found)\n`;
    for (let n = 0; n < 3; n++) await nests.python.run(`print("${secret}")\nx = "${secret}" * 100\n`);
    // Once, in the words that it looks for.
    expect(Number((await nests.python.run(search)).stdout)).toBeLessThan(4);
  });

  test('[SC-03] two side by side see nothing of each other, and cannot reach PID 1', async () => {
    const marker = makeMarker();
    const other = await ready(await nests.bash.hot(1));
    const running = finish(other, { code: '' });
    const code = [
      `ls -d /proc/[0-9]* | wc -l`,
      'for f in mem maps fd environ root cwd; do head -c 1 /proc/1/$f >/dev/null 2>&1 && echo open $f; ls /proc/1/$f >/dev/null 2>&1; done',
      'kill -9 1 2>&1; kill -INT 1 2>&1; kill -9 -1 2>/dev/null',
      `echo ${marker}`,
    ].join('\n');
    const { stdout } = await nests.bash.run(code, 0);
    expect(stdout).not.toContain('open');
    other.main?.closeStdin();
    await running.catch(() => {});
    await other.dispose();
    expect((await nests.bash.run('echo still', 0)).stdout).toBe('still\n');
  });
});

describe.each(['bash', 'python'] as const)('limits of a run of %s', (language) => {
  const run = (code: string, slot = 0) => nests[language].run(code, slot);
  const shell = (code: string): string =>
    language === 'bash'
      ? code
      : `import os, sys\nsys.exit(os.waitstatus_to_exitcode(os.system(${JSON.stringify(code)})))`;

  test('[SC-04] memory: who takes more is killed, and the slot serves the next one', async () => {
    const code = language === 'bash' ? 'x=$(head -c 600M /dev/zero | tr "\\0" x)' : 'x = bytearray(1 << 30)';
    const { outcome, usage } = await run(code);
    expect(usage.reached).toContain('memoryBytes');
    expect(usage.peakMemoryBytes).toBeLessThanOrEqual(256 * MiB);
    expect(outcome).toMatchObject(
      outcome.kind === 'limit' ? { limit: 'memoryBytes' } : { kind: 'exited', code: 137 },
    );
    expect((await run(shell('exit 7'))).outcome).toEqual({ kind: 'exited', code: 7 });
  });

  test('[SC-04] processes: a fork bomb is stopped, told, and gone with its run', async () => {
    // Not by bash, which tries again for a quarter of a minute.
    const fork = 'for (1 .. 200) { my $pid = fork; if (defined $pid && !$pid) { sleep 60; exit } } exit 5';
    const bomb = await run(shell(`perl -e '${fork}'`));
    expect(bomb.usage.reached).toContain('processes');
    const next = await run(shell('exit 0'));
    expect(next).toMatchObject({ outcome: { kind: 'exited', code: 0 }, usage: { reached: [] } });
  });

  test('[SC-04] the room in /tmp is bounded, and all of it is there for the next one', async () => {
    for (let n = 0; n < 3; n++) {
      const { stdout } = await run(
        language === 'bash'
          ? 'head -c 100M /dev/zero >/tmp/full 2>/dev/null; stat -c %s /tmp/full'
          : 'try:\n  f = open("/tmp/full", "wb", buffering=0)\n  while True: f.write(bytes(65536))\nexcept OSError: print(f.tell())',
      );
      expect(Number(stdout)).toBeGreaterThan(60 * MiB);
      expect(Number(stdout)).toBeLessThanOrEqual(64 * MiB);
    }
  });

  test('[CX-07] what it used is counted for it alone', async () => {
    const busy = await run(
      language === 'bash' ? 'for ((n = 0; n < 200000; n++)); do :; done' : 'sum(range(10_000_000))',
    );
    const idle = await run(shell('exit 0'));
    expect(busy.usage.cpuMs).toBeGreaterThan(3 * idle.usage.cpuMs);
    expect(idle.usage.peakMemoryBytes).toBeLessThan(64 * MiB);
  });

  test('[CX-05, SC-02] killed, it is gone with all that it started, also what ignores signals', async () => {
    const marker = makeMarker();
    const cell = await nests[language].hot(0);
    const ran = finish(cell, { code: shell(`trap "" TERM; setsid sleep ${marker} & sleep ${marker}`) });
    await waitFor('both run', () => countMarked(marker) >= 2);
    await cell.main?.kill('wallTimeMs');
    expect((await ran).outcome).toEqual({ kind: 'limit', limit: 'wallTimeMs' });
    await waitFor('they are gone', () => countMarked(marker) === 0);
  });

  test('[CX-04] input and output as they come, and more than fits into any pipe', async () => {
    const text = 'ä line\n'.repeat(100_000);
    const code = language === 'bash' ? 'cat' : 'import sys\nsys.stdout.write(sys.stdin.read())';
    const { stdout } = await nests[language].run({ code, stdin: text });
    expect(Buffer.from(stdout, 'latin1').toString()).toBe(text);
  });

  test('memory can be granted to one run alone', async () => {
    const cell = await nests[language].hot(0);
    await cell.limitMemory?.(600 * MiB);
    const take = (megabytes: number): string =>
      language === 'bash'
        ? `exec perl -e '$x = "x" x (${megabytes} << 20)'`
        : `x = bytearray(b"x") * (${megabytes} << 20)`;
    expect((await finish(cell, { code: take(270) })).outcome).toEqual({ kind: 'exited', code: 0 });
    const { usage } = await run(take(270));
    expect(usage.reached).toContain('memoryBytes');
  });
});
