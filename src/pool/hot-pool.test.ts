import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Cell, CellSpec } from '../core/cell.ts';
import type { Clock } from '../core/clock.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { ExecEvent } from '../core/exec.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { HotPool, type HotPoolOptions } from './hot-pool.ts';
import { READY_BYTE } from './job-frame.ts';

const NOBODY = new AbortController().signal;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

/** Time goes on only when a test says so. */
class HandClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ at: number; readonly intervalMs: number; task(): void }>();

  now(): number {
    return this.#now;
  }

  every(intervalMs: number, task: () => void): () => void {
    const timer = { at: this.#now + intervalMs, intervalMs, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  get timers(): number {
    return this.#timers.size;
  }

  async advance(byMs: number): Promise<void> {
    const until = this.#now + byMs;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.at <= until).toSorted((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#now = due.at;
      due.at += due.intervalMs;
      due.task();
      await nextTurn();
    }
    this.#now = until;
    await nextTurn();
  }
}

type Boot = (spec: CellSpec, events: EventQueue<ExecEvent>) => void;

const sayReady: Boot = (_spec, events) => events.push({ type: 'stdout', bytes: Uint8Array.of(READY_BYTE) });

/** A driver without any runtime: its programs say what the test wants. */
class ScriptedDriver implements Driver {
  readonly name = 'scripted';
  readonly specs: CellSpec[] = [];
  boot: Boot = sayReady;
  peakMemoryBytes: number | undefined = undefined;
  readonly #alive = new Set<string>();

  probe(): Promise<never> {
    return Promise.reject(new Error('nobody asks for it here'));
  }

  create(spec: CellSpec): Promise<Cell> {
    const id = String(this.specs.push(spec));
    this.#alive.add(id);
    const events = new EventQueue<ExecEvent>();
    this.boot(spec, events);
    const { promise: gone, resolve } = Promise.withResolvers<void>();
    const main = { events, write() {}, closeStdin() {}, kill: () => Promise.resolve(), ended: gone };
    return Promise.resolve({
      id,
      name: spec.name,
      workdir: '/tmp',
      get isolation(): never {
        throw new Error('nobody asks for it here');
      },
      main,
      exec: () => Promise.resolve(main),
      limitMemory: () => Promise.resolve(),
      usage: () => Promise.resolve({ cpuMs: 0, peakMemoryBytes: this.peakMemoryBytes, reached: [] }),
      gone,
      dispose: () => {
        this.#alive.delete(id);
        resolve();
        return gone;
      },
    });
  }

  get alive(): number {
    return this.#alive.size;
  }

  list(): [] {
    return [];
  }

  reclaim(): Promise<[]> {
    return Promise.resolve([]);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

function makePool(changes: Partial<HotPoolOptions> = {}) {
  const clock = new HandClock();
  const driver = new ScriptedDriver();
  const pool = new HotPool({
    driver,
    languages: {
      lua: Language.parse({ extension: 'lua', command: ['lua', '{filepath}'], package: 'lua5.4' }),
    },
    limits: DEFAULT_LIMITS,
    size: 2,
    booting: 2,
    memoryBytes: 1024 ** 3,
    idleMs: 30 * MINUTE,
    idleCheckMs: 5 * MINUTE,
    clock,
    log: SILENT_LOG,
    ...changes,
  });
  return { clock, driver, pool };
}

async function startPool(changes: Partial<HotPoolOptions> = {}) {
  const made = makePool(changes);
  const failed = await made.pool.start();
  await nextTurn();
  return { ...made, failed };
}

const say = (text: string): ExecEvent => ({ type: 'stderr', bytes: new TextEncoder().encode(text) });
const exit = (code: number): ExecEvent => ({
  type: 'exit',
  outcome: { kind: 'exited', code },
  usage: { cpuMs: 0, peakMemoryBytes: undefined, reached: [] },
});

describe('idle cells', () => {
  test('[CX-14] stay as long as the idle time is not over', async () => {
    const { clock, driver } = await startPool();
    await clock.advance(30 * MINUTE - 1);
    expect(driver.alive).toBe(2);
  });

  test('[CX-14] are removed at the first check after it, and stay away', async () => {
    const { clock, driver, pool } = await startPool();
    await clock.advance(30 * MINUTE);
    expect(driver.alive).toBe(0);
    expect(pool.status('lua')).toMatchObject({ state: 'stopped', ready: 0, problem: undefined });
    await clock.advance(60 * MINUTE);
    expect(driver.specs).toHaveLength(2);
  });

  test('[CX-14] are made again by the next request', async () => {
    const { clock, driver, pool } = await startPool();
    await clock.advance(30 * MINUTE);
    const { warm } = await pool.take('lua', NOBODY);
    expect({ warm, alive: driver.alive }).toEqual({ warm: false, alive: 1 });
    pool.release('lua');
    await nextTurn();
    expect(pool.status('lua').ready).toBe(2);
  });

  test('[CX-14] a use within the time puts it off', async () => {
    const { clock, driver, pool } = await startPool();
    await clock.advance(20 * MINUTE);
    await pool.take('lua', NOBODY);
    pool.release('lua');
    await clock.advance(29 * MINUTE);
    expect(driver.alive).toBe(3);
  });

  test('[CX-14] each language rests by itself', async () => {
    const language = Language.parse({ extension: 'x', command: ['x', '{filepath}'] });
    const { clock, pool } = await startPool({ languages: { used: language, unused: language } });
    await clock.advance(20 * MINUTE);
    await pool.take('used', NOBODY);
    pool.release('used');
    await clock.advance(10 * MINUTE);
    expect([pool.status('used').ready, pool.status('unused').ready]).toEqual([2, 0]);
  });
});

describe('budgets', () => {
  test('a budget that is used up stops refills', async () => {
    const { pool, driver } = makePool({ size: 10, memoryBytes: 100 });
    driver.peakMemoryBytes = 100;
    await pool.start();
    await nextTurn();
    expect({ ready: pool.status('lua').ready, booted: driver.specs.length }).toEqual({ ready: 1, booted: 1 });
  });

  test('waiting cells hold no more memory than granted', async () => {
    const { pool, driver } = makePool({ size: 10, booting: 1, memoryBytes: 100 });
    driver.peakMemoryBytes = 40;
    await pool.start();
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    expect(pool.status('lua').ready).toBeLessThanOrEqual(3);
  });

  test('memory that a taken cell frees is used again', async () => {
    const { driver, pool } = makePool({ size: 1, memoryBytes: 50 });
    driver.peakMemoryBytes = 60;
    await pool.start();
    await pool.take('lua', NOBODY);
    pool.release('lua');
    await nextTurn();
    expect(pool.status('lua').ready).toBe(1);
  });

  test('no more cells boot at once than granted', async () => {
    const { driver, pool } = makePool({ size: 5, booting: 2 });
    const waiting: (() => void)[] = [];
    driver.boot = (spec, events) => waiting.push(() => sayReady(spec, events));
    const started = pool.start();
    const counts: number[] = [];
    while (driver.specs.length < 5 || waiting.length > 0) {
      await nextTurn();
      counts.push(waiting.length);
      waiting.shift()?.();
    }
    await started;
    expect(Math.max(...counts)).toBe(2);
  });

  test('a size of nothing boots nothing until somebody asks', async () => {
    const { driver, pool } = await startPool({ size: 0 });
    expect(driver.specs).toHaveLength(0);
    await expect(pool.take('lua', NOBODY)).resolves.toMatchObject({ warm: false });
  });
});

describe('booting', () => {
  test('[CX-03, CX-13] a cell has its name, its limits and its code file', async () => {
    const { driver, pool } = await startPool({ size: 1 });
    const [spec] = driver.specs;
    expect(spec).toMatchObject({ kind: 'run', limits: DEFAULT_LIMITS });
    expect(spec?.name).toMatch(/^code-runner-lua-[0-9a-f]{4}$/);
    expect(spec?.touch).toMatch(/^\{workdir\}\/exec_[0-9a-f-]{36}\.lua$/);
    const { hot } = await pool.take('lua', NOBODY);
    expect(hot.filePath).toBe(spec?.touch?.replace('{workdir}', '/tmp'));
  });

  test('[CX-11] a language without its interpreter names the package that brings it', async () => {
    const { driver, pool } = makePool();
    driver.boot = (_spec, events) => {
      events.push(say('lua: not found\n'));
      events.push(exit(127));
    };
    const failure = (await pool.start()).get('lua');
    expect(failure).toMatchObject({ code: 'LANGUAGE_UNAVAILABLE', hint: 'apt-get install -y lua5.4' });
    expect(failure?.message).toContain('lua: not found');
    expect(pool.status('lua').problem).toContain('there is no lua in the cell');
  });

  test('[CX-08] an interpreter that ends during its boot leaves no cell behind', async () => {
    const { driver, pool } = makePool({ size: 1 });
    driver.boot = (_spec, events) => {
      events.push(say('out of luck'));
      events.push(exit(3));
    };
    const failure = (await pool.start()).get('lua');
    expect(failure?.code).toBe('CELL_START_FAILED');
    expect(failure?.message).toContain('(exit 3): out of luck');
    expect(driver.alive).toBe(0);
  });

  test('[CX-08] a cell that is lost during its boot leaves none behind, either', async () => {
    const { driver, pool } = makePool({ size: 1 });
    driver.boot = (_spec, events) => events.fail(new HotcellError('CELL_LOST', 'gone'));
    expect((await pool.start()).get('lua')?.code).toBe('CELL_LOST');
    expect(driver.alive).toBe(0);
  });

  test('[CX-08] a failed boot is tried again without anybody asking', async () => {
    const { clock, driver, pool } = makePool({ size: 1 });
    driver.boot = (_spec, events) => events.fail(new HotcellError('CELL_LOST', 'gone'));
    await pool.start();
    driver.boot = sayReady;
    await clock.advance(SECOND);
    expect(pool.status('lua')).toEqual({ state: 'running', ready: 1, problem: undefined });
  });

  test('output before the byte of readiness does not count as readiness', async () => {
    const { driver, pool } = makePool({ size: 1 });
    let finish: () => void = () => {};
    driver.boot = (spec, events) => {
      events.push({ type: 'stdout', bytes: new TextEncoder().encode('warning\n') });
      finish = () => sayReady(spec, events);
    };
    const started = pool.start();
    await nextTurn();
    expect(pool.status('lua').ready).toBe(0);
    finish();
    await started;
    expect(pool.status('lua').ready).toBe(1);
  });
});

test('[CX-18] close removes every cell and ends the timers', async () => {
  const { clock, driver, pool } = await startPool();
  await pool.close();
  expect({ alive: driver.alive, timers: clock.timers }).toEqual({ alive: 0, timers: 0 });
});

test('a language that is not in the table is an error of its own', () => {
  expect(() => makePool().pool.take('cobol', NOBODY)).toThrow('no language is called cobol');
});
