import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { SessionStore } from '../../src/sessions/session-store.ts';
import { testThatNeeds } from '../support/needs.ts';
import { fillWith, mountDisk } from '../support/own-disk.ts';

const rootTest = testThatNeeds(process.geteuid?.() === 0 ? undefined : 'only root mounts a disk of its own');
const root = mkdtempSync(join(tmpdir(), 'hotcell-store-full-'));
const disk = join(root, 'disk');
beforeAll(() => mountDisk(disk, 4 * 1024 * 1024));
afterAll(() => {
  execFileSync('umount', [disk]);
  rmSync(root, { recursive: true });
});

rootTest('[RS-22] what finds no room is undone and said, however far it had come', () => {
  const store = SessionStore.open(join(disk, 'state'));
  const boot = (): string => (store.noteBoot('first') ? 'another' : 'first');
  boot();
  fillWith(join(disk, 'filler'));
  const works = [
    // Fails when it is written.
    () => void store.noteBoot('x'.repeat(100_000)),
    // Fails in between, of something else.
    () => {
      store.noteBoot('second');
      throw new Error('of its own');
    },
    // Fails at the end.
    () => void store.noteBoot('second'),
  ];
  for (const work of works) {
    const expected = work === works[1] ? { message: 'of its own' } : { code: 'SESSIONS_UNAVAILABLE' };
    expect(() => {
      // As often as it takes: the file may have a little room left.
      for (let times = 0; times < 10_000; times++) store.atomically(work);
    }).toThrow(expect.objectContaining(expected));
  }
  rmSync(join(disk, 'filler'));
  store.atomically(() => void store.noteBoot('third'));
  expect(store.noteBoot('third')).toBe(false);
  store.close();
});
