import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fleetPaths, type FleetPaths } from '../names.ts';
import { findOrchestrator, takeOrchestrator, type OrchestratorRecord } from './orchestrator-lock.ts';

const CHILD = fileURLToPath(new URL('../../../test/support/fleet-state-child.ts', import.meta.url));
let root = '';
let paths: FleetPaths;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-orchestrator-'));
  paths = fleetPaths(root, 'shop');
});
afterEach(() => rmSync(root, { recursive: true }));

async function holdElsewhere(): Promise<{ child: ChildProcess; record: OrchestratorRecord }> {
  const child = spawn(process.execPath, [CHILD, root, 'shop', 'hold', 'container'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return { child, record: JSON.parse(chunk.toString()) as OrchestratorRecord };
}

test('[FL-15] a second orchestrator is refused with pid and start of the first', async () => {
  const { child, record } = await holdElsewhere();
  try {
    expect(record).toMatchObject({ pid: child.pid, mode: 'container' });
    expect(findOrchestrator(paths)).toEqual(record);
    expect(() => takeOrchestrator(paths)).toThrow(
      expect.objectContaining({
        code: 'FLEET_BUSY',
        message: `process ${child.pid}, started ${record.started_at}, works on feature shop`,
      }),
    );
  } finally {
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  expect(findOrchestrator(paths)).toBeUndefined();
  expect(existsSync(paths.orchestrator)).toBe(false);
});

test('[FL-11, FL-15] one that was killed counts no more, whatever its record says', async () => {
  const { child } = await holdElsewhere();
  child.kill('SIGKILL');
  await once(child, 'exit');
  expect(existsSync(paths.orchestrator)).toBe(true);
  expect(findOrchestrator(paths)).toBeUndefined();
  using hold = takeOrchestrator(paths, { mode: 'subprocess' });
  expect(hold.record.pid).toBe(process.pid);
  expect(findOrchestrator(paths)).toEqual(hold.record);
});

test('[FL-15] features do not disturb each other', () => {
  using one = takeOrchestrator(paths);
  using other = takeOrchestrator(fleetPaths(root, 'blog'));
  expect(one.record.pid).toBe(other.record.pid);
});

test('[FL-15] the record of another process is not taken for the holder', () => {
  using hold = takeOrchestrator(paths);
  // As it is for a moment after a start: the lock is new, the record that of one that died, its pid somebody else's.
  const stale = { ...hold.record, process_start: '1' };
  writeFileSync(paths.orchestrator, JSON.stringify(stale));
  expect(findOrchestrator(paths)).toBeUndefined();
  expect(() => takeOrchestrator(paths)).toThrow('another process');
  expect(JSON.parse(readFileSync(paths.orchestrator, 'utf8'))).toEqual(stale);
});
