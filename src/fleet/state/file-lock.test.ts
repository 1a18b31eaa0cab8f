import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isFileLockHeld, tryHoldFileLock, withFileLock } from './file-lock.ts';

const MODULE = new URL('./file-lock.ts', import.meta.url).href;
let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-lock-'));
  path = join(folder, 'deep/shop.lock');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('[FL-06] one at a time, also within a process', () => {
  expect(isFileLockHeld(path)).toBe(false);
  const lock = tryHoldFileLock(path);
  expect(isFileLockHeld(path)).toBe(true);
  expect(tryHoldFileLock(path)).toBeUndefined();
  expect(() => withFileLock(path, () => 1, 10)).toThrow(expect.objectContaining({ code: 'FLEET_BUSY' }));
  lock?.[Symbol.dispose]();
  lock?.[Symbol.dispose]();
  expect(isFileLockHeld(path)).toBe(false);
  expect(withFileLock(path, () => 7)).toBe(7);
  expect(readdirSync(join(folder, 'deep'))).toEqual(['shop.lock']);
});

test('[FL-06] what throws lets go of it', () => {
  expect(() =>
    withFileLock(path, () => {
      throw new Error('odd');
    }),
  ).toThrow('odd');
  expect(isFileLockHeld(path)).toBe(false);
});

test('[FL-06] a lock on a file that was removed keeps nobody from the new one', () => {
  const old = tryHoldFileLock(path);
  rmSync(path);
  const lock = tryHoldFileLock(path);
  expect(lock).toBeDefined();
  old?.[Symbol.dispose]();
  expect(isFileLockHeld(path)).toBe(true);
  lock?.[Symbol.dispose]();
});

test('[FL-06] a file that is no lock is said to be none', () => {
  writeFileSync(join(folder, 'notes'), 'this is a longer text and no database at all\n'.repeat(100));
  expect(() => withFileLock(join(folder, 'notes'), () => 1)).toThrow(
    expect.objectContaining({ code: 'FLEET_STATE' }),
  );
});

test('[FL-06] the kernel takes it from a process that is killed', async () => {
  const script = `import { tryHoldFileLock } from ${JSON.stringify(MODULE)};
    globalThis.lock = tryHoldFileLock(${JSON.stringify(path)});
    process.stdout.write('held'); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  expect(isFileLockHeld(path)).toBe(true);
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(isFileLockHeld(path)).toBe(false);
  expect(withFileLock(path, () => 'mine', 0)).toBe('mine');
});
