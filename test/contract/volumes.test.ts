import { execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect } from 'vitest';
import { SILENT_LOG } from '../../src/core/log.ts';
import { LoopVolumes } from '../../src/drivers/volumes/loop-volumes.ts';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { mountsIn, unmountAll } from '../support/engine-remains.ts';
import { howOften } from '../support/endurance.ts';
import { listProcesses, waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { MiB } from './cells.ts';

const CHILD = fileURLToPath(new URL('volumes-child.ts', import.meta.url));
const BYTES = 16 * MiB;
const LONG_MS = 1e9;
const test = testThatNeeds(whyNoVolumes());

let directory = '';
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'hotcell-volumes-'));
});
afterEach(async () => {
  await unmountAll(directory);
  rmSync(directory, { recursive: true, force: true });
});

async function makeVolumes(keepForMs = LONG_MS): Promise<LoopVolumes> {
  const volumes = new LoopVolumes({ directory, keepForMs, log: SILENT_LOG });
  await volumes.prepare();
  return volumes;
}

/** A disk of this size. */
function toTmpfs(name: string, bytes: number): string {
  const path = join(directory, name);
  mkdirSync(path);
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path]);
  return path;
}

/** Resolves when the kernel knows of no files in the directory: whoever lists its devices holds each of them for a moment. */
const untilNoLoops = (): Promise<void> =>
  waitFor(
    'all loop devices are free',
    () => !execFileSync('losetup', ['-a'], { encoding: 'utf8' }).includes(directory),
  );

const run = (script: string, cwd: string): string =>
  execFileSync('bash', ['-c', script], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

test('[RS-13] a volume is bounded by the kernel, belongs to its own user and is found again', async () => {
  const volumes = await makeVolumes();
  const { folder, owner, fresh } = await volumes.open('project', BYTES);
  expect(fresh).toBe(true);
  expect([statSync(folder).uid, statSync(join(folder, '.tmp')).uid]).toEqual([owner, owner]);
  expect(statSync(join(folder, '.tmp')).mode & 0o7777).toBe(0o1777);
  expect(() => run(`head -c ${2 * BYTES} /dev/zero >big`, folder)).toThrow('No space left on device');
  expect(statSync(join(folder, 'big')).size).toBeLessThan(BYTES);
  expect(await volumes.usedBytes('project')).toBeGreaterThan(BYTES / 2);
  run('rm big; echo kept >note', folder);
  await volumes.release('project', 'all');
  expect(await volumes.usedBytes('project')).toBeUndefined();
  const again = await volumes.open('project', BYTES);
  expect(again).toEqual({ folder, owner, fresh: false });
  expect(readFileSync(join(folder, 'note'), 'utf8')).toBe('kept\n');
  expect(readdirSync(join(folder, '.tmp'))).toEqual([]);
  await volumes.release('project', 'nothing');
  await volumes.close();
  expect([readdirSync(directory), mountsIn(directory)]).toEqual([[], []]);
  await untilNoLoops();
});

test('[RS-14, RS-17] projects have users and places of their own, whatever they are called', async () => {
  const volumes = await makeVolumes();
  const keys = ['a', 'b', '../../etc', 'a/b', '\n', 'x'.repeat(5000)];
  const opened = await Promise.all(keys.map((key) => volumes.open(key, BYTES)));
  expect(new Set(opened.map(({ owner }) => owner)).size).toBe(keys.length);
  expect(new Set(opened.map(({ folder }) => folder)).size).toBe(keys.length);
  for (const { folder } of opened) expect(folder.slice(directory.length)).toMatch(/^\/[0-9a-f]{24}$/);
  await Promise.all(keys.map((key) => volumes.release(key, 'nothing')));
  await volumes.close();
  expect([readdirSync(directory), mountsIn(directory)]).toEqual([[], []]);
});

test('[RS-13, RS-17] a volume that is asked for with more space grows, with all that is in it', async () => {
  const volumes = await makeVolumes();
  const { folder } = await volumes.open('project', BYTES);
  writeFileSync(join(folder, 'note'), 'kept');
  const before = statfsSync(folder).blocks;
  await volumes.release('project', 'all');
  await volumes.open('project', 3 * BYTES);
  expect(statfsSync(folder).blocks).toBeGreaterThan(2 * before);
  expect(readFileSync(join(folder, 'note'), 'utf8')).toBe('kept');
  await volumes.release('project', 'all');
  await volumes.open('project', BYTES);
  expect(statfsSync(folder).blocks).toBeGreaterThan(2 * before);
  await volumes.release('project', 'nothing');
});

test('[RS-17] dependencies and caches are kept, and nothing else', async () => {
  const volumes = await makeVolumes();
  const { folder } = await volumes.open('project', BYTES);
  const kept = ['p/node_modules/x/y', 'p/.venv/bin/python', 'p/packages/a/node_modules/b/c', '.home/.npm/d'];
  const gone = [
    'p/main.js',
    'p/src/a/b',
    '.home/.bash_history',
    '.home/.ssh/key',
    '.tmp/x',
    '.env',
    'p/.git/x',
  ];
  for (const path of [...kept, ...gone]) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), 'x');
  }
  await volumes.release('project', 'dependencies');
  await volumes.open('project', BYTES);
  expect(kept.filter((path) => existsSync(join(folder, path)))).toEqual(kept);
  expect(gone.filter((path) => existsSync(join(folder, path)))).toEqual([]);
  expect(readdirSync(folder).toSorted()).toEqual(['.home', '.tmp', 'p']);
  await volumes.release('project', 'nothing');
});

test('[RS-14, RS-17, SC-03] no link leads the pruning out of a volume, and no name confuses it', async () => {
  const outside = mkdtempSync(join(tmpdir(), 'hotcell-outside-'));
  try {
    mkdirSync(join(outside, 'src'));
    writeFileSync(join(outside, 'src/precious'), 'x');
    const volumes = await makeVolumes();
    const { folder } = await volumes.open('project', BYTES);
    mkdirSync(join(folder, 'p/node_modules'), { recursive: true });
    for (const name of ['node_modules2', '.home', '.tmp2', '.venv']) symlinkSync(outside, join(folder, name));
    for (const name of ['link', '.venv', 'src']) symlinkSync(outside, join(folder, 'p', name));
    run(
      `mkdir -- -rf $'\\xff\\xfe' '$(touch x)' $'a\\nb' '*'; echo x >$'\\xff\\xfe/\\xfd'; mkfifo pipe; ln pipe other; chmod 0 ./*`,
      join(folder, 'p'),
    );
    await volumes.release('project', 'dependencies');
    await volumes.open('project', BYTES);
    expect(run('find . -mindepth 1 | sort', folder)).toBe('./.tmp\n./p\n./p/node_modules\n');
    expect(readdirSync(join(outside, 'src'))).toEqual(['precious']);
    await volumes.release('project', 'nothing');
  } finally {
    rmSync(outside, { recursive: true });
  }
});

test('[RS-17, SC-02] what nobody can remove piece by piece goes as a whole', async () => {
  const volumes = await makeVolumes();
  const { folder } = await volumes.open('project', BYTES);
  const nest = 'name=$(printf %0200d 0); for i in $(seq 60); do mkdir $name && cd $name || exit 1; done';
  for (const top of ['p/node_modules', 'p/deep', '.tmp']) {
    mkdirSync(join(folder, top), { recursive: true });
    run(nest, join(folder, top));
  }
  await volumes.release('project', 'all');
  await volumes.open('project', BYTES);
  expect(readdirSync(join(folder, '.tmp'))).toEqual([]);
  await volumes.release('project', 'dependencies');
  expect(mountsIn(directory)).toEqual([directory]);
  expect(readdirSync(directory).filter((name) => /^[0-9a-f]{24}/.test(name))).toEqual([]);
});

test('[RS-17] a volume with nothing worth keeping is gone with its session', async () => {
  const volumes = await makeVolumes();
  const { folder } = await volumes.open('project', BYTES);
  mkdirSync(join(folder, 'p/src/deep'), { recursive: true });
  await volumes.release('project', 'dependencies');
  expect(existsSync(folder)).toBe(false);
  await untilNoLoops();
  await volumes.release('project', 'dependencies');
  await volumes.release('never opened', 'nothing');
  await volumes.close();
  expect(readdirSync(directory)).toEqual([]);
});

test('[RS-17, SC-02] reclaim lets go of what nobody uses, and removes it when its time has come', async () => {
  const first = await makeVolumes();
  for (const key of ['used', 'unused', 'empty']) await first.open(key, BYTES);
  const { folder } = await first.open('unused', BYTES);
  const nest = 'name=$(printf %0200d 0); for i in $(seq 30); do mkdir $name && cd $name || exit 1; done';
  run(`${nest}; echo x >file`, folder);
  const [later, muchLater] = [await makeVolumes(), await makeVolumes(-1)];
  await later.reclaim(new Set(['used']));
  expect([await later.usedBytes('unused'), (await later.usedBytes('used')) !== undefined]).toEqual([
    undefined,
    true,
  ]);
  expect((await later.open('unused', BYTES)).fresh).toBe(false);
  // Nobody has ever worked there: the server was killed while it made a session.
  expect((await later.open('empty', BYTES)).fresh).toBe(true);
  await later.release('unused', 'all');
  await muchLater.reclaim(new Set(['used']));
  expect((await later.open('unused', BYTES)).fresh).toBe(true);
  await muchLater.reclaim(new Set());
  expect(mountsIn(directory)).toEqual([directory]);
  await muchLater.close();
  expect([readdirSync(directory), mountsIn(directory)]).toEqual([[], []]);
  await untilNoLoops();
});

test('[SC-02] prepare and close can be called again, and leave what is in use', async () => {
  const volumes = await makeVolumes();
  await volumes.prepare();
  const { folder } = await volumes.open('project', BYTES);
  await volumes.close();
  writeFileSync(join(folder, 'still'), 'there');
  await volumes.release('project', 'nothing');
  await volumes.close();
  await volumes.close();
  expect([readdirSync(directory), mountsIn(directory)]).toEqual([[], []]);
  await volumes.prepare();
  await volumes.open('project', BYTES);
  await volumes.release('project', 'nothing');
  await volumes.close();
});

test.each([
  ['a file system', 0.3],
  ['a copy of it', 1.5],
])('[SC-02] a disk without room for %s is said, and nothing half made stays', async (_what, share) => {
  const roomy = toTmpfs('roomy', 8 * BYTES);
  const first = new LoopVolumes({ directory: roomy, keepForMs: LONG_MS, log: SILENT_LOG });
  await first.open('project', BYTES);
  const template = readdirSync(roomy).find((name) => name.startsWith('template-')) ?? '';
  const taken = 512 * statSync(join(roomy, template)).blocks;
  await first.release('project', 'nothing');
  const small = toTmpfs('small', Math.floor(taken * share));
  const volumes = new LoopVolumes({ directory: small, keepForMs: LONG_MS, log: SILENT_LOG });
  await volumes.prepare();
  await expect(volumes.open('project', BYTES)).rejects.toMatchObject({
    code: 'SESSIONS_UNAVAILABLE',
    hint: `Free space below ${small}.`,
  });
  expect(readdirSync(small).filter((name) => !name.startsWith('template-'))).toEqual([]);
  await volumes.close();
  expect(readdirSync(small)).toEqual([]);
});

test('[SC-02] whenever it is killed, the next one finds everything and touches nobody else', async () => {
  const other = mkdtempSync(join(tmpdir(), 'hotcell-other-'));
  const others = new LoopVolumes({ directory: other, keepForMs: LONG_MS, log: SILENT_LOG });
  try {
    await others.prepare();
    const { folder } = await others.open('project', BYTES);
    for (let round = 0; round < howOften(6, 40); round++) {
      const child = spawn(process.execPath, [CHILD, directory, String(BYTES)], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exited = once(child, 'exit');
      await once(child.stdout, 'data');
      await sleep(randomInt(150));
      child.kill('SIGKILL');
      await exited;
      // A helper that is just at work may outlive it for a moment.
      await waitFor('its helpers are gone', () => !listProcesses().some((line) => line.includes(directory)));
      const next = await makeVolumes(round % 2 === 0 ? -1 : LONG_MS);
      await next.reclaim(new Set());
      expect(mountsIn(directory)).toEqual([directory]);
      await untilNoLoops();
      const names = readdirSync(directory).filter((name) => !name.startsWith('template-'));
      const isWhole = (name: string): boolean => /^[0-9a-f]{24}(\.img|\.json)?$/.test(name);
      expect(round % 2 === 0 ? names : names.filter((name) => !isWhole(name))).toEqual([]);
      await next.open('key-0', BYTES);
      await next.release('key-0', 'all');
    }
    expect(mountsIn(other)).toEqual([other, folder]);
  } finally {
    await others.release('project', 'nothing');
    await others.close();
    rmSync(other, { recursive: true });
  }
});
