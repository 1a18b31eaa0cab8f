import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { requireSearchableWay } from './searchable-way.ts';

const base = mkdtempSync(join(tmpdir(), 'hotcell-way-'));
afterAll(() => rmSync(base, { recursive: true }));
const closed = join(base, 'closed');
mkdirSync(join(closed, 'deep'), { recursive: true });
const path = join(closed, 'deep/folder');
const STRANGER = { uid: 0x70000001, gid: 0x70000001 };

test('[FL-09] gVisor gets through folders that everybody may search', async () => {
  chmodSync(base, 0o711);
  chmodSync(closed, 0o711);
  await expect(requireSearchableWay(path, STRANGER)).resolves.toBeUndefined();
});

test('[FL-09] and through others if they are those of the cell', async () => {
  chmodSync(base, 0o711);
  chmodSync(closed, 0o710);
  const { uid, gid } = statSync(closed);
  await expect(requireSearchableWay(path, STRANGER)).rejects.toThrow(closed);
  await expect(requireSearchableWay(path, { ...STRANGER, gid })).resolves.toBeUndefined();
  await expect(requireSearchableWay(path, { ...STRANGER, uid })).resolves.toBeUndefined();
});
