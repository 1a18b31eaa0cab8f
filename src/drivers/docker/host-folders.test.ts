import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { CellSpec } from '../../core/cell.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { requireHostFolders } from './host-folders.ts';

const folder = mkdtempSync(join(tmpdir(), 'hotcell-host-folders-'));
afterAll(() => rmSync(folder, { recursive: true }));
const HERE = { local: true, mapsUsers: false };
const WORKER: CellSpec = {
  name: 'x',
  kind: 'worker',
  limits: DEFAULT_LIMITS,
  owner: { uid: 1000, gid: 50 },
  folders: [{ name: 'work', folder, at: '/workspace', writable: true }],
};
const UNENFORCEABLE = { code: 'POLICY_UNENFORCEABLE' };

test('[FL-09] an engine of this machine that maps no users has workers', async () => {
  await expect(requireHostFolders(WORKER, HERE)).resolves.toBeUndefined();
});

test.each([
  ['maps users', { ...HERE, mapsUsers: true }],
  ['is on another machine', { ...HERE, local: false }],
])('[FL-09, SC-04] an engine that %s has none', async (_what, engine) => {
  await expect(requireHostFolders(WORKER, engine)).rejects.toMatchObject(UNENFORCEABLE);
});

test('[FL-09, SC-03] a worker is never root', async () => {
  await expect(requireHostFolders({ ...WORKER, owner: { uid: 0, gid: 1000 } }, HERE)).rejects.toMatchObject(
    UNENFORCEABLE,
  );
});

test('folders that are only read are left to the engine, wherever it is', async () => {
  const spec: CellSpec = {
    name: 'x',
    kind: 'run',
    limits: DEFAULT_LIMITS,
    folders: [{ name: 'packages', folder: '/not/on/this/machine', at: '/packages' }],
  };
  await expect(requireHostFolders(spec, { local: false, mapsUsers: true })).resolves.toBeUndefined();
});
