import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import type { ExecRequest } from '../../src/core/exec.ts';
import { DEFAULT_LIMITS, type Limits } from '../../src/core/limits.ts';
import { PreloadDriver } from '../../src/drivers/preload/driver.ts';
import { MiB, bash, finish, python, readLine, survivors, type Finished } from '../contract/cells.ts';
import { closePlace, describeCodePlacesAndWalls, onlyPreload, runCode } from '../support/code-places.ts';
import { waitFor } from '../support/leftovers.ts';
import type { PreloadChildTask } from '../support/preload-child.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';

const place = onlyPreload();
afterAll(() => closePlace(place));

async function run(request: ExecRequest, limits: Partial<Limits> = {}): Promise<Finished> {
  const cell = await place.driver.create({
    name: 'limits',
    kind: 'run',
    limits: { ...DEFAULT_LIMITS, cpus: 1, memoryBytes: 512 * MiB, ...limits },
  });
  try {
    const exec = await cell.exec(request);
    exec.closeStdin();
    return await finish(exec);
  } finally {
    await cell.dispose();
  }
}

await describeCodePlacesAndWalls((where) => {
  afterAll(() => closePlace(where));

  test('[MC-06] memory beyond the limit ends the code, and the outcome says so', async () => {
    const hog = `const kept = [];
console.log('begun');
for (let round = 0; round < 400; round++) { kept.push(new Uint8Array(8 << 20).fill(1)); await Bun.sleep(1); }
console.log('survived', kept.length);`;
    const { stdout, outcome } = await runCode(where, hog, { limits: { memoryBytes: 256 * MiB } });
    expect({ stdout, outcome }).toEqual({
      stdout: 'begun\n',
      outcome: { kind: 'limit', limit: 'memoryBytes' },
    });
  });

  test('[MC-06] an endless loop ends at the time that was granted, and the outcome says so', async () => {
    const { stdout, outcome } = await runCode(where, `console.log('begun'); for (;;);`, {
      onStart: (exec) => void setTimeout(() => void exec.kill('wallTimeMs'), 1000),
    });
    expect({ stdout, outcome }).toEqual({
      stdout: 'begun\n',
      outcome: { kind: 'limit', limit: 'wallTimeMs' },
    });
  });

  test('[MC-02] processes cannot be had by the hundred', async () => {
    const bomb = `let started = 0;
for (let round = 0; round < 300; round++)
  try { (await import('bun')).spawn(['sleep', '100']); started++; } catch {}
console.log('started', started);
process.exit(0);`;
    const { stdout } = await runCode(where, bomb);
    expect(stdout).toBe('started 0\n');
  });
});

describe('the supervisor', () => {
  test('[MC-06] counts memory that is held for a while, of all processes together', async () => {
    const { usage } = await run(
      python('import os,time\nos.fork()\nx = bytearray(100 * 2**20)\ntime.sleep(0.5)'),
    );
    expect(usage.peakMemoryBytes).toBeGreaterThan(200 * MiB);
    expect(usage.peakMemoryBytes).toBeLessThan(300 * MiB);
  });

  test('[MC-06] adds up many processes, none of which is too large', async () => {
    const forker = `import os,time
for _ in range(8):
  if os.fork() == 0:
    x = bytearray(48 * 2**20)
    time.sleep(100)
time.sleep(100)`;
    const { outcome } = await run(python(forker), { memoryBytes: 256 * MiB });
    expect(outcome).toEqual({ kind: 'limit', limit: 'memoryBytes' });
  });

  test('[MC-06] holds a cell to its cores', async () => {
    const hog = `import os,time
for _ in range(2): os.fork()
end = time.monotonic() + 1.5
while time.monotonic() < end: pass
try:
  while True: os.wait()
except ChildProcessError: pass`;
    const startedAt = performance.now();
    const { usage } = await run(python(hog), { cpus: 1 });
    expect(usage.cpuMs / (performance.now() - startedAt)).toBeLessThan(1.1);
  });

  test.each([
    ['in one file', 'head -c 60000000 /dev/zero > big'],
    ['in many files', 'for i in $(seq 60); do head -c 1000000 /dev/zero > f$i; done; sleep 100'],
    [
      'in folders',
      'for i in $(seq 60); do mkdir -p d/$i/$i; head -c 1000000 /dev/zero > d/$i/$i/f; done; sleep 100',
    ],
    [
      'in files without a name',
      'for i in $(seq 20 60); do eval "exec $i>f$i"; rm f$i; head -c 1000000 /dev/zero >&$i; done; sleep 100',
    ],
    ['in empty files', 'mkdir many; i=0; while :; do i=$((i+1)); : > many/$i; done'],
  ])('[MC-06] ends a command that fills the disk %s', async (how, script) => {
    const diskBytes = (how === 'in empty files' ? 2 : 16) * MiB;
    const { outcome, usage } = await run(bash(script), { diskBytes, openFiles: 256 });
    // By SIGXFSZ, or by the supervisor.
    expect(outcome.kind === 'exited' ? outcome.code : outcome).toSatisfy(
      (end: unknown) => end === 153 || JSON.stringify(end) === '{"kind":"signalled","signal":9}',
    );
    expect(usage.diskShare).toBeGreaterThan(0);
  });

  test('[MC-06] sees a fork bomb refused, and none of it is left', async () => {
    const marker = `bomb-${randomUUID()}`;
    const { usage } = await run(
      // Not in bash, which tries again for half a minute when it is refused.
      python(`
import os, time
def bomb(depth):
    for _ in range(9):
        try: child = os.fork()
        except OSError: return
        if child == 0:
            if depth < 3: bomb(depth + 1)
            os.execvp('sleep', ['${marker}', '100'])
bomb(0)
time.sleep(0.5)`),
      { processes: 30 },
    );
    expect(usage.reached).toContain('processes');
    await waitFor('all are gone', () => survivors(marker).length === 0);
  });
});

describe('the end of the server', () => {
  test('[SC-02] by kill -9: the program ends with it, and the next start removes the rest', async () => {
    const [marker, child] = [`main-${randomUUID()}`, `child-${randomUUID()}`];
    const folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-killed-'));
    chmodSync(folder, 0o711);
    const stateDirectory = join(folder, 's');
    const task: PreloadChildTask = {
      stateDirectory,
      requests: [
        bash(
          `(setsid env -i bash -c 'exec -a ${child} sleep 1000' &); echo up; exec -a ${marker} sleep 1000`,
        ),
      ],
      stay: true,
    };
    const script = fileURLToPath(new URL('../support/preload-child.ts', import.meta.url));
    const server = spawn(process.execPath, [script, JSON.stringify(task)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(server.stdout, 'data');
    await waitFor('both run', () => survivors(marker).length > 0 && survivors(child).length > 0);
    server.kill('SIGKILL');
    await once(server, 'exit');
    await waitFor('the program is gone', () => survivors(`${marker} `).length === 0);
    const driver = new PreloadDriver({ stateDirectory, guest: '', tools: bundledTools(), weaker: [] });
    expect(await driver.reclaim()).toHaveLength(1);
    await waitFor(
      'its child, too',
      () => survivors(child).filter((line) => line.startsWith(child)).length === 0,
    );
    expect(readdirSync(`${stateDirectory}-preload`)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});

test('[MC-06] a command that ignores being asked is killed', async () => {
  const cell = await place.driver.create({ name: 'x', kind: 'run', limits: { ...DEFAULT_LIMITS, cpus: 1 } });
  const exec = await cell.exec(bash('trap "" TERM INT HUP; echo up; while :; do sleep 1; done'));
  await readLine(exec);
  exec.terminate?.();
  await exec.kill('wallTimeMs');
  expect((await finish(exec)).outcome).toEqual({ kind: 'limit', limit: 'wallTimeMs' });
  await cell.dispose();
});
