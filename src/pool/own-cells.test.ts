import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { HotPool, type HotPoolOptions, type OwnNeeds, type Taken } from './hot-pool.ts';
import { ScriptedDriver, type ScriptedProgram } from './scripted-driver.double.ts';
import type { Strategy } from './strategy.ts';

const needs = (memoryBytes: number): OwnNeeds => ({ memoryBytes, folders: [] });
const NOBODY = new AbortController().signal;
const MINUTE = 60_000;
const USUAL = DEFAULT_LIMITS.memoryBytes;
const OTHER = USUAL * 2;

async function startPool(strategy: Strategy, changes: Partial<HotPoolOptions> = {}) {
  const clock = new HandClock();
  const driver = new ScriptedDriver();
  const pool = new HotPool({
    driver,
    strategy,
    languages: { lua: Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] }) },
    limits: DEFAULT_LIMITS,
    size: 1,
    booting: 2,
    memoryBytes: 1024 ** 3,
    idleMs: 30 * MINUTE,
    idleCheckMs: 5 * MINUTE,
    clock,
    log: SILENT_LOG,
    ...changes,
  });
  await pool.start();
  await nextTurn();
  return { clock, driver, pool };
}

const factsOf = ({ hot, warm, memoryBytes }: Taken) => ({ cell: hot.cell.id, warm, memoryBytes });

describe('a cell of its own, strategy fresh', () => {
  test('[CX-12] is the next that waits', async () => {
    const { pool } = await startPool('fresh');
    expect(factsOf(await pool.takeOwn('lua', needs(USUAL), NOBODY))).toEqual({
      cell: '1',
      warm: true,
      memoryBytes: USUAL,
    });
  });

  test('[CX-09] is the next that waits when its memory can be limited anew', async () => {
    const { pool } = await startPool('fresh');
    expect(factsOf(await pool.takeOwn('lua', needs(OTHER), NOBODY))).toEqual({
      cell: '1',
      warm: true,
      memoryBytes: USUAL,
    });
  });

  test('[CX-09] is made for the purpose when it cannot, and the one that waits is made again', async () => {
    const { driver, pool } = await startPool('fresh');
    const [waiting] = driver.cells;
    if (waiting !== undefined) delete waiting.limitMemory;
    driver.canLimitMemory = false;
    const taken = await pool.takeOwn('lua', needs(OTHER), NOBODY);
    expect({ warm: taken.warm, memoryBytes: taken.memoryBytes }).toEqual({ warm: false, memoryBytes: OTHER });
    const own = driver.cells.find((cell) => cell.id === taken.hot.cell.id);
    expect(own?.spec.limits).toEqual({ ...DEFAULT_LIMITS, memoryBytes: OTHER });
    await nextTurn();
    expect([waiting?.disposals, pool.status('lua').ready]).toEqual([1, 1]);
    taken.release();
    expect(pool.status('lua').ready).toBe(1);
  });

  test('[MC-11] is made for the purpose when it has to see folders, and the one that waits goes on waiting', async () => {
    const { driver, pool } = await startPool('fresh');
    const folders = [{ name: 'packages', folder: '/srv/packages', at: '/packages' }];
    const taken = await pool.takeOwn('lua', { memoryBytes: USUAL, folders }, NOBODY);
    expect(driver.cells.map(({ spec }) => spec.folders)).toEqual([undefined, folders]);
    expect([taken.warm, taken.hot.cell.id, pool.status('lua').ready]).toEqual([false, '2', 1]);
  });
});

describe('a cell of its own, strategy shared', () => {
  test('[CX-09, CX-12] has nobody else in it, its memory and its own end', async () => {
    const { driver, pool } = await startPool('shared');
    const taken = await pool.takeOwn('lua', needs(OTHER), NOBODY);
    expect(factsOf(taken)).toEqual({ cell: '2', warm: false, memoryBytes: OTHER });
    const own = driver.cells[1];
    expect(own?.spec).toMatchObject({ kind: 'run', limits: { ...DEFAULT_LIMITS, memoryBytes: OTHER } });
    expect(own?.main).toBe(taken.hot.main);
    taken.release();
    taken.hot.retire();
    await taken.hot.dispose();
    expect(driver.cells.map((cell) => cell.disposals)).toEqual([0, 1]);
    expect((await pool.take('lua', NOBODY)).hot.cell.id).toBe('1');
  });

  test('[CX-18] is removed when its taker went away while it booted', async () => {
    const { driver, pool } = await startPool('shared');
    const caller = new AbortController();
    const booting: ScriptedProgram[] = [];
    driver.boot = (program) => booting.push(program);
    const taking = pool.takeOwn('lua', needs(USUAL), caller.signal);
    await nextTurn();
    caller.abort(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    booting[0]?.sayReady();
    await expect(taking).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    expect(driver.cells[1]?.disposals).toBe(1);
  });

  test('[CX-08] that does not start is an error for its taker alone', async () => {
    const { driver, pool } = await startPool('shared');
    driver.beforeCreate = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    await expect(pool.takeOwn('lua', needs(USUAL), NOBODY)).rejects.toMatchObject({ message: 'away' });
    expect(pool.status('lua')).toMatchObject({ ready: 1, problem: undefined });
  });

  test('boots in its turn', async () => {
    const { driver, pool } = await startPool('shared', { booting: 1 });
    const booting: ScriptedProgram[] = [];
    driver.boot = (program) => booting.push(program);
    const taking = [pool.takeOwn('lua', needs(USUAL), NOBODY), pool.takeOwn('lua', needs(USUAL), NOBODY)];
    await nextTurn();
    expect(driver.cells).toHaveLength(2);
    booting[0]?.sayReady();
    await nextTurn();
    expect(driver.cells).toHaveLength(3);
    booting[1]?.sayReady();
    await Promise.all(taking);
  });

  test('[CX-14] counts as a use of the language', async () => {
    const { clock, driver, pool } = await startPool('shared');
    await clock.advance(20 * MINUTE);
    await pool.takeOwn('lua', needs(USUAL), NOBODY);
    await clock.advance(25 * MINUTE);
    expect(driver.cells[0]?.disposals).toBe(0);
  });

  test('[CX-18] that still boots is waited for by close', async () => {
    const { driver, pool } = await startPool('shared');
    const booting: ScriptedProgram[] = [];
    driver.boot = (program) => booting.push(program);
    const caller = new AbortController();
    const taking = Promise.allSettled([pool.takeOwn('lua', needs(USUAL), caller.signal)]);
    await nextTurn();
    caller.abort();
    let closed = false;
    const closing = pool.close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    booting[0]?.sayReady();
    await closing;
    await taking;
    expect(driver.alive).toBe(0);
  });

  test.each<Strategy>(['fresh', 'shared'])(
    'of a language that there is not is an error (%s)',
    async (strategy) => {
      const { pool } = await startPool(strategy);
      await expect(pool.takeOwn('cobol', needs(USUAL), NOBODY)).rejects.toMatchObject({
        code: 'LANGUAGE_UNKNOWN',
      });
    },
  );
});

describe('strategy shared', () => {
  test.each([
    [1, 1],
    [2, 2],
    [50, 2],
  ])('[CX-11, CX-12] a size of %i: one cell with %i interpreters that wait', async (size, waiting) => {
    const { driver, pool } = await startPool('shared', { size });
    expect(pool.strategy).toBe('shared');
    expect([driver.cells.length, driver.cells[0]?.programs.length, pool.status('lua').ready]).toEqual([
      1,
      waiting,
      waiting,
    ]);
  });

  test('[CX-12] a taker gets an interpreter that waits, and the next boots in the same cell', async () => {
    const { driver, pool } = await startPool('shared');
    const first = await pool.take('lua', NOBODY);
    expect(factsOf(first)).toEqual({ cell: '1', warm: true, memoryBytes: USUAL });
    await first.hot.dispose();
    first.release();
    await nextTurn();
    expect([driver.cells.length, driver.cells[0]?.programs.length, pool.status('lua').ready]).toEqual([
      1, 2, 1,
    ]);
  });

  test('[CX-14] after a long idle time the cell is removed, and made again by the next request', async () => {
    const { clock, driver, pool } = await startPool('shared');
    await clock.advance(30 * MINUTE);
    expect([driver.alive, pool.status('lua').state]).toEqual([0, 'stopped']);
    expect(factsOf(await pool.take('lua', NOBODY))).toMatchObject({ cell: '2', warm: false });
  });

  test('[CX-14] a run that takes long keeps the cell', async () => {
    const { clock, driver, pool } = await startPool('shared');
    const { hot, release } = await pool.take('lua', NOBODY);
    await clock.advance(60 * MINUTE);
    expect(driver.alive).toBe(1);
    await hot.dispose();
    release();
    await clock.advance(40 * MINUTE);
    expect(driver.alive).toBe(0);
  });

  test('[CX-16] a cell that is lost with those who wait in it is replaced before anybody asks', async () => {
    const { driver, pool } = await startPool('shared');
    driver.cells[0]?.lose();
    await nextTurn();
    expect([driver.cells.length, pool.status('lua').ready]).toEqual([2, 1]);
  });

  test('[CX-16] who waits in a cell that was given up is given to nobody', async () => {
    const { driver, pool } = await startPool('shared', { size: 2 });
    const [first, waiting] = driver.cells[0]?.programs ?? [];
    const taken = await pool.take('lua', NOBODY);
    expect(taken.hot.main).toBe(first);
    taken.hot.retire();
    expect(factsOf(await pool.take('lua', NOBODY))).toMatchObject({ cell: '2', warm: false });
    await nextTurn();
    expect([first?.isEnded, waiting?.isEnded]).toEqual([false, true]);
    await taken.hot.dispose();
    await nextTurn();
    expect(driver.cells.map((cell) => cell.disposals)).toEqual([1, 0]);
  });

  test('[CX-16] those who wait in it are replaced as soon as the run that spoiled it is over', async () => {
    const { driver, pool } = await startPool('shared', { size: 2 });
    const { hot, release } = await pool.take('lua', NOBODY);
    hot.retire();
    await hot.dispose();
    release();
    await nextTurn();
    expect(driver.cells.map((cell) => cell.disposals)).toEqual([1, 0]);
    expect([driver.cells[1]?.programs.length, pool.status('lua').ready]).toEqual([2, 2]);
  });

  test('[CX-18] close removes the cell', async () => {
    const { driver, pool } = await startPool('shared', { size: 2 });
    await pool.close();
    expect(driver.alive).toBe(0);
  });
});
