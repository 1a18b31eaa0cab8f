import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FleetState, LOG_ENTRIES_KEPT } from '../fleet-state.ts';
import { fleetPaths, type FleetPaths } from '../names.ts';
import { FOREIGN_STATE } from '../../../test/support/foreign-fleet-state.ts';
import { appendEvent, backupOf, StateStore } from './state-store.ts';

const CHILD = fileURLToPath(new URL('../../../test/support/fleet-state-child.ts', import.meta.url));
const NOW = new Date('2026-02-03T04:05:06.000Z');

let root = '';
let paths: FleetPaths;
let warnings: string[] = [];
let store: StateStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'hotcell-state-'));
  paths = fleetPaths(root, 'shop');
  warnings = [];
  store = new StateStore(paths, { onWarning: (message) => warnings.push(message), now: () => NOW });
});
afterEach(() => rmSync(root, { recursive: true }));

const fresh = (): FleetState => FleetState.parse({ feature: 'shop', started_at: NOW.toISOString() });

function readEvents(): { event: string; seq: number; data: Record<string, unknown> }[] {
  return readFileSync(paths.events, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as never);
}

function count(times: number, name: string): ChildProcess {
  return spawn(process.execPath, [CHILD, root, 'shop', 'count', String(times), name], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

describe('one process', () => {
  test('[FL-06] what was created is read, and a feature without state has none', () => {
    expect(store.read()).toBeUndefined();
    expect(() => store.update(() => {})).toThrow(expect.objectContaining({ code: 'FLEET_UNKNOWN' }));
    store.create(fresh());
    expect(store.read()).toMatchObject({ feature: 'shop', current_level: 0, tasks: {}, paused: false });
    expect(statSync(paths.state).mode & 0o133).toBe(0);
  });

  test('[FL-06] a change begins with what is on disk and keeps what it does not know', () => {
    store.create({ ...fresh(), worker_progress: { 0: 'half' } });
    new StateStore(paths).update((state) => {
      state.tasks['A'] = { status: 'pending', retry_count: 0, consumers: ['B'] };
    });
    const result = store.update((state) => {
      state.current_level = 2;
      return Object.keys(state.tasks);
    });
    expect(result).toEqual(['A']);
    expect(store.read()).toMatchObject({
      current_level: 2,
      worker_progress: { 0: 'half' },
      tasks: { A: { status: 'pending', consumers: ['B'] } },
    });
  });

  test('[FL-06] a change that throws, waits or is wrong changes nothing, and the lock is free again', () => {
    store.create(fresh());
    const before = readFileSync(paths.state, 'utf8');
    expect(() =>
      store.update((state) => {
        state.paused = true;
        throw new Error('no');
      }),
    ).toThrow('no');
    // oxlint-disable-next-line require-await -- that it is one is what must be noticed
    expect(() => store.update(async (state) => (state.paused = true))).toThrow('must not wait');
    expect(() => store.update((state) => (state.tasks['A'] = { status: 'odd' } as never))).toThrow(
      'tasks.A.status',
    );
    expect(readFileSync(paths.state, 'utf8')).toBe(before);
    store.update((state) => (state.paused = true));
    expect(store.read()?.paused).toBe(true);
  });

  test('[FL-06] a change of nothing writes nothing', () => {
    store.create(fresh());
    const { ino } = statSync(paths.state);
    store.update((state) => state.tasks);
    expect(statSync(paths.state).ino).toBe(ino);
  });

  test('[FL-06] a state that another program wrote is read and keeps its keys', () => {
    mkdirSync(paths.stateFolder, { recursive: true });
    writeFileSync(paths.state, JSON.stringify(FOREIGN_STATE));
    store.note('rush_started', { workers: 2 });
    const state = store.read();
    expect(warnings).toEqual([]);
    expect(state).toMatchObject({ ...FOREIGN_STATE, execution_log: expect.anything() as unknown });
    expect(state?.execution_log.map(({ event }) => event)).toEqual([
      ...FOREIGN_STATE.execution_log.map(({ event }) => event),
      'rush_started',
    ]);
    expect(readEvents()).toEqual([
      { timestamp: NOW.toISOString(), event: 'rush_started', data: { workers: 2 }, seq: 1 },
    ]);
  });
});

describe('events', () => {
  test('[FL-06] the state has the last ones, the file all of them', () => {
    store.create(fresh());
    const many = LOG_ENTRIES_KEPT + 20;
    store.update((state) => {
      for (let turn = 0; turn < many; turn++) appendEvent(state, 'turn', { turn });
    });
    store.note('last');
    expect(store.read()?.execution_log).toHaveLength(LOG_ENTRIES_KEPT);
    expect(store.read()?.execution_log.at(-1)?.event).toBe('last');
    expect(readEvents().map(({ seq }) => seq)).toEqual(
      Array.from({ length: many + 1 }, (_, index) => index + 1),
    );
  });

  test('[FL-06] what a crash kept from the file is written by the next change, once', () => {
    store.create(fresh());
    store.note('one');
    const length = statSync(paths.events).size;
    store.note('two', { text: 'x'.repeat(200_000) });
    store.note('three');
    // Died after the state was written, within the line of the event.
    truncateSync(paths.events, length + 20);
    store.note('four');
    const lines = readFileSync(paths.events, 'utf8').trim().split('\n');
    expect(lines).toHaveLength(5);
    const whole = lines
      .filter((_, index) => index !== 1)
      .map((line) => (JSON.parse(line) as { event: string }).event);
    expect(whole).toEqual(['one', 'two', 'three', 'four']);
  });

  test('[FL-06] a feature that begins again counts on', () => {
    store.create(fresh());
    store.note('first run');
    const again = fresh();
    appendEvent(again, 'rush_started');
    store.create(again);
    store.note('second run');
    expect(readEvents().map(({ event, seq }) => [event, seq])).toEqual([
      ['first run', 1],
      ['rush_started', 2],
      ['second run', 3],
    ]);
  });
});

describe('a file that somebody broke', () => {
  test.each([
    ['half of it', (text: string) => text.slice(0, text.length / 2)],
    ['nothing in it', () => ''],
    ['a field of a wrong type', (text: string) => text.replace('"paused": true', '"paused": "yes"')],
  ])('[FL-06] %s: the one before is used, and it is said', (_what, damage) => {
    store.create(fresh());
    store.note('one');
    store.update((state) => (state.paused = true));
    writeFileSync(paths.state, damage(readFileSync(paths.state, 'utf8')));
    expect(store.read()).toMatchObject({ paused: false, execution_log: [{ event: 'one' }] });
    expect(warnings.join()).toContain(backupOf(paths.state));

    store.note('two');
    warnings = [];
    expect(store.read()).toMatchObject({
      paused: false,
      execution_log: [{ event: 'one' }, { event: 'two' }],
    });
    expect(warnings).toEqual([]);
    expect(existsSync(`${paths.state}.broken`)).toBe(true);
    expect(readEvents().map(({ event }) => event)).toEqual(['one', 'two']);
  });

  test('[FL-06] both broken: the error names the file and the field', () => {
    store.create(fresh());
    store.note('one');
    writeFileSync(paths.state, '{"feature": "shop", "started_at": 5}');
    writeFileSync(backupOf(paths.state), '{');
    expect(() => store.read()).toThrow(
      expect.objectContaining({
        code: 'FLEET_STATE',
        message: expect.stringContaining('started_at') as unknown,
        hint: expect.stringContaining('.bak') as unknown,
      }),
    );
  });
});

describe('many processes', () => {
  test('[FL-06] change it at once and lose nothing', async () => {
    store.create(fresh());
    const names = ['a', 'b', 'c', 'd', 'e'];
    const children = names.map((name) => count(20, name));
    const codes = await Promise.all(
      children.map(async (child) => ((await once(child, 'exit')) as [number])[0]),
    );
    expect(codes).toEqual([0, 0, 0, 0, 0]);
    const state = store.read();
    expect(state?.['count']).toBe(100);
    expect(Object.keys(state?.tasks ?? {})).toHaveLength(100);
    expect(state?.execution_log).toHaveLength(100);
    expect(readEvents().map(({ seq }) => seq)).toEqual(Array.from({ length: 100 }, (_, index) => index + 1));
  });

  test('[FL-06] are killed at any moment and leave a state that can be read and changed', async () => {
    store.create(fresh());
    for (let round = 0; round < 8; round++) {
      const child = count(100_000, `r${round}`);
      await once(child.stdout ?? child, 'data');
      const changes = 1 + Math.floor(Math.random() * 20);
      const before = Number(store.read()?.['count']);
      while (Number(store.read()?.['count']) < before + changes);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const state = store.read();
      store.note('survived', { round });
      expect(Number(state?.['count'])).toBe(Object.keys(state?.tasks ?? {}).length);
    }
    expect(warnings).toEqual([]);
    const seqs = readEvents().map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  });
});
