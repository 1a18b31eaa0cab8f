import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { HotPool, type HotPoolOptions } from './hot-pool.ts';
import { ScriptedDriver, sayReady, type Boot } from './scripted-driver.double.ts';

const NOBODY = new AbortController().signal;
const SECOND = 1000;
const MINUTE = 60 * SECOND;

function makePool(changes: Partial<HotPoolOptions> = {}) {
  const clock = new HandClock();
  const driver = new ScriptedDriver();
  const pool = new HotPool({
    driver,
    strategy: 'fresh',
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

const endWith =
  (code: number, words: string): Boot =>
  (program) => {
    program.say(words);
    program.exit({ kind: 'exited', code });
  };

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
    const { warm, release } = await pool.take('lua', NOBODY);
    expect({ warm, alive: driver.alive }).toEqual({ warm: false, alive: 1 });
    release();
    await nextTurn();
    expect(pool.status('lua').ready).toBe(2);
  });

  test('[CX-14] a use within the time puts it off', async () => {
    const { clock, driver, pool } = await startPool();
    await clock.advance(20 * MINUTE);
    const { release } = await pool.take('lua', NOBODY);
    release();
    await clock.advance(29 * MINUTE);
    expect(driver.alive).toBe(3);
  });

  test('[CX-14] each language rests by itself', async () => {
    const language = Language.parse({ extension: 'x', command: ['x', '{filepath}'] });
    const { clock, pool } = await startPool({ languages: { used: language, unused: language } });
    await clock.advance(20 * MINUTE);
    const { release } = await pool.take('used', NOBODY);
    release();
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
    const { release } = await pool.take('lua', NOBODY);
    release();
    await nextTurn();
    expect(pool.status('lua').ready).toBe(1);
  });

  test('no more cells boot at once than granted', async () => {
    const { driver, pool } = makePool({ size: 5, booting: 2 });
    const waiting: (() => void)[] = [];
    driver.boot = (program) => waiting.push(() => program.sayReady());
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
    expect(spec?.main?.touch).toMatch(/^\{workdir\}\/exec_[0-9a-f-]{36}\.lua$/);
    const { hot } = await pool.take('lua', NOBODY);
    expect(hot.filePath).toBe(spec?.main?.touch?.replace('{workdir}', '/tmp'));
  });

  test('[CX-11] a language without its interpreter names the package that brings it', async () => {
    const { driver, pool } = makePool();
    driver.boot = endWith(127, 'lua: not found\n');
    const failure = (await pool.start()).get('lua');
    expect(failure).toMatchObject({ code: 'LANGUAGE_UNAVAILABLE', hint: 'apt-get install -y lua5.4' });
    expect(failure?.message).toContain('lua: not found');
    expect(pool.status('lua').problem).toContain('there is no lua in the cell');
  });

  test('[CX-08] an interpreter that ends during its boot leaves no cell behind', async () => {
    const { driver, pool } = makePool({ size: 1 });
    driver.boot = endWith(3, 'out of luck');
    const failure = (await pool.start()).get('lua');
    expect(failure?.code).toBe('CELL_START_FAILED');
    expect(failure?.message).toContain('(exit 3): out of luck');
    expect(driver.alive).toBe(0);
  });

  test('[CX-08] a cell that is lost during its boot leaves none behind, either', async () => {
    const { driver, pool } = makePool({ size: 1 });
    driver.boot = (program) => program.lose();
    expect((await pool.start()).get('lua')?.code).toBe('CELL_LOST');
    expect(driver.alive).toBe(0);
  });

  test('[CX-08] a failed boot is tried again without anybody asking', async () => {
    const { clock, driver, pool } = makePool({ size: 1 });
    driver.boot = (program) => program.lose();
    await pool.start();
    driver.boot = sayReady;
    await clock.advance(SECOND);
    expect(pool.status('lua')).toEqual({ state: 'running', ready: 1, problem: undefined });
  });

  test('output before the byte of readiness does not count as readiness', async () => {
    const { driver, pool } = makePool({ size: 1 });
    let finish: () => void = () => {};
    driver.boot = (program) => {
      program.say('warning\n', 'stdout');
      finish = () => program.sayReady();
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

test('a language that is not in the table is an error of its own', async () => {
  await expect(makePool().pool.take('cobol', NOBODY)).rejects.toThrow('no language is called cobol');
});
