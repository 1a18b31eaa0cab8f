import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { HotCell } from './hot-cell.ts';
import { ScriptedDriver, sayReady, type Boot, type ScriptedProgram } from './scripted-driver.double.ts';
import { SharedCell, sharedCapacity } from './shared-cell.ts';

const CAPACITY = sharedCapacity(DEFAULT_LIMITS);

function makeShared(booting = 8) {
  const driver = new ScriptedDriver();
  const boots = new Semaphore(booting);
  const entry = Language.parse({
    extension: 'lua',
    command: ['lua', '{filepath}'],
    image: 'lua:5',
    recipe: 'lua',
  });
  const shared = new SharedCell({
    driver,
    language: { name: 'lua', entry },
    limits: DEFAULT_LIMITS,
    log: SILENT_LOG,
    inTurn: (boot) => boots.run(boot),
  });
  return { driver, shared };
}

const programOf = (hot: HotCell): ScriptedProgram => hot.main as ScriptedProgram;

/** The program of a run ends, and whoever listens has heard of it. */
async function finish(hot: HotCell, diskShare?: number): Promise<void> {
  const program = programOf(hot);
  if (diskShare !== undefined) program.usageNow = { ...program.usageNow, diskShare };
  program.exit({ kind: 'exited', code: 0 });
  await nextTurn();
}

const disposals = (driver: ScriptedDriver): number[] => driver.cells.map((cell) => cell.disposals);
const idsOf = (hots: readonly HotCell[]): string[] => hots.map(({ cell }) => cell.id);

describe('capacity', () => {
  test.each([
    [64, 4],
    [63, 3],
    [16, 1],
    [1, 1],
    [1024, 64],
  ])('[CX-12] a limit of %i processes leaves room for %i runs', (processes, runs) => {
    expect(sharedCapacity({ ...DEFAULT_LIMITS, processes })).toBe(runs);
  });

  test('[CX-12] who finds the cell full waits until somebody has ended', async () => {
    const { driver, shared } = makeShared();
    const inside = await Promise.all(Array.from({ length: CAPACITY }, () => shared.boot()));
    let waiter: HotCell | undefined;
    const waiting = shared.boot().then((hot) => (waiter = hot));
    await nextTurn();
    expect([waiter, driver.cells[0]?.programs.length]).toEqual([undefined, CAPACITY]);
    const [first] = inside;
    if (first !== undefined) await finish(first);
    await waiting;
    expect([waiter?.cell.id, driver.cells.length]).toEqual(['1', 1]);
  });

  test('a boot that failed gives its place back', async () => {
    const { driver, shared } = makeShared();
    driver.boot = (program) => program.lose(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    for (let count = 0; count < CAPACITY + 1; count++)
      await expect(shared.boot()).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
    driver.boot = sayReady;
    await expect(shared.boot()).resolves.toBeDefined();
  });
});

describe('one cell', () => {
  test('[CX-12, CX-13] serves many runs, one after the other and at once', async () => {
    const { driver, shared } = makeShared();
    const hots = [await shared.boot(), ...(await Promise.all([shared.boot(), shared.boot()]))];
    for (const hot of hots) await finish(hot);
    hots.push(await shared.boot());
    expect(idsOf(hots)).toEqual(['1', '1', '1', '1']);
    expect(driver.specs).toMatchObject([
      { kind: 'run', limits: DEFAULT_LIMITS, image: { name: 'lua:5', recipe: 'lua' } },
    ]);
    expect(driver.specs[0]?.name).toMatch(/^code-runner-lua-[0-9a-f]{4}$/);
    expect(driver.specs[0]).not.toHaveProperty('main');
    expect(disposals(driver)).toEqual([0]);
  });

  test('[CX-03, CX-12] gives each run a code file of its own', async () => {
    const { shared } = makeShared();
    const hots = await Promise.all([shared.boot(), shared.boot()]);
    const files = hots.map((hot) => programOf(hot).request.touch?.replace('{workdir}', '/tmp'));
    expect(new Set(files).size).toBe(2);
    expect(hots.map(({ filePath }) => filePath)).toEqual(files);
    expect(files[0]).toMatch(/^\/tmp\/exec_[0-9a-f-]{36}\.lua$/);
  });

  test('[CX-12] two first boots make one', async () => {
    const { driver, shared } = makeShared();
    let open: () => void = () => {};
    driver.beforeCreate = () => new Promise((resolve) => (open = resolve));
    const boots = [shared.boot(), shared.boot()];
    await nextTurn();
    open();
    expect(idsOf(await Promise.all(boots))).toEqual(['1', '1']);
  });

  test('[CX-10] what the boot has used is that of the interpreter', async () => {
    const { driver, shared } = makeShared();
    driver.peakMemoryBytes = 7;
    expect((await shared.boot()).bootUsage.peakMemoryBytes).toBe(7);
  });

  test('[CX-12] an interpreter that is not wanted any more ends alone', async () => {
    const { driver, shared } = makeShared();
    const [one, other] = await Promise.all([shared.boot(), shared.boot()]);
    await one.dispose();
    await one.dispose();
    expect([programOf(one).isEnded, programOf(other).isEnded]).toEqual([true, false]);
    expect(disposals(driver)).toEqual([0]);
  });
});

describe('a cell', () => {
  test('[CX-16] that was lost is replaced', async () => {
    const { driver, shared } = makeShared();
    await shared.boot();
    driver.cells[0]?.lose();
    await nextTurn();
    expect((await shared.boot()).cell.id).toBe('2');
    expect(disposals(driver)).toEqual([1, 0]);
  });

  test('[CX-16] that is lost while an interpreter boots in it is replaced at once', async () => {
    const { driver, shared } = makeShared();
    driver.boot = (program) => {
      driver.boot = sayReady;
      program.lose();
    };
    expect((await shared.boot()).cell.id).toBe('2');
  });

  test('[CX-08] that is lost again and again is an error in the end', async () => {
    const { driver, shared } = makeShared();
    driver.boot = (program) => program.lose();
    await expect(shared.boot()).rejects.toMatchObject({ code: 'CELL_LOST' });
    await nextTurn();
    expect(disposals(driver)).toEqual([1, 1]);
  });

  test('[CX-16] that somebody found spoiled is left, and goes with the last who is in it', async () => {
    const { driver, shared } = makeShared();
    const [one, other] = await Promise.all([shared.boot(), shared.boot()]);
    one.retire();
    one.retire();
    const next = await shared.boot();
    expect(next.cell.id).toBe('2');
    await finish(one);
    expect([disposals(driver), programOf(other).isEnded]).toEqual([[0, 0], false]);
    await finish(other);
    expect(disposals(driver)).toEqual([1, 0]);
  });

  test('[CX-16] that somebody found spoiled is that for all who are in it', async () => {
    const { shared } = makeShared();
    const [one, other] = await Promise.all([shared.boot(), shared.boot()]);
    expect([one.spoiled, other.spoiled]).toEqual([false, false]);
    one.retire();
    expect([one.spoiled, other.spoiled, (await shared.boot()).spoiled]).toEqual([true, true, false]);
  });

  test('[CX-16] that was found spoiled while an interpreter booted in it is not used for it', async () => {
    const { driver, shared } = makeShared();
    const neighbour = await shared.boot();
    const booting: ScriptedProgram[] = [];
    driver.boot = (program) => booting.push(program);
    const boot = shared.boot();
    await nextTurn();
    neighbour.retire();
    driver.boot = sayReady;
    booting[0]?.sayReady();
    expect((await boot).cell.id).toBe('2');
    expect([booting[0]?.isEnded, programOf(neighbour).isEnded]).toEqual([true, false]);
    await finish(neighbour);
    expect(disposals(driver)).toEqual([1, 0]);
  });

  test.each([
    [0.5, ['1', '1']],
    [0.51, ['1', '2']],
  ])('[CX-12] whose disk is full to %d: the next run', async (share, ids) => {
    const { driver, shared } = makeShared();
    const first = await shared.boot();
    await finish(first, share);
    expect(idsOf([first, await shared.boot()])).toEqual(ids);
    expect(disposals(driver)[0]).toBe(share > 0.5 ? 1 : 0);
  });

  test('[CX-12] whose disk is full keeps who is in it to the end', async () => {
    const { driver, shared } = makeShared();
    const [one, other] = await Promise.all([shared.boot(), shared.boot()]);
    await finish(one, 0.9);
    expect((await shared.boot()).cell.id).toBe('2');
    expect(disposals(driver)).toEqual([0, 0]);
    await finish(other);
    expect(disposals(driver)).toEqual([1, 0]);
  });
});

const refuseToStart: Boot = (program) =>
  program.lose(new HotcellError('CELL_START_FAILED', 'fork: Resource temporarily unavailable'));
const breakAtStart: Boot = (program) => {
  program.say('spoiled by whoever was here before');
  program.exit({ kind: 'exited', code: 1 });
};
const runOutOfMemory: Boot = (program) => program.exit({ kind: 'limit', limit: 'memoryBytes' });

describe('an interpreter that does not start', () => {
  test.each<[string, Boot]>([
    ['has no room', refuseToStart],
    ['breaks', breakAtStart],
    ['runs out of memory', runOutOfMemory],
  ])('[CX-12, CX-16] because it %s beside others is started in a new cell', async (_what, boot) => {
    const { driver, shared } = makeShared();
    const neighbour = await shared.boot();
    driver.boot = (program, spec) => (driver.cells.length < 2 ? boot : sayReady)(program, spec);
    driver.beforeCreate = async () => void (driver.boot = sayReady);
    expect((await shared.boot()).cell.id).toBe('2');
    expect([disposals(driver), programOf(neighbour).isEnded]).toEqual([[0, 0], false]);
    await finish(neighbour);
    expect(disposals(driver)).toEqual([1, 0]);
  });

  test('[CX-12, CX-16] in a cell that has served before is started in a new one', async () => {
    const { driver, shared } = makeShared();
    await finish(await shared.boot());
    driver.boot = breakAtStart;
    driver.beforeCreate = async () => void (driver.boot = sayReady);
    expect((await shared.boot()).cell.id).toBe('2');
    await nextTurn();
    expect(disposals(driver)).toEqual([1, 0]);
  });

  test.each<[string, Boot, string]>([
    ['has no room', refuseToStart, 'CELL_START_FAILED'],
    ['breaks', breakAtStart, 'CELL_START_FAILED'],
    ['runs out of memory', runOutOfMemory, 'LIMIT_TOO_LOW'],
    ['is not there', (program) => program.exit({ kind: 'exited', code: 127 }), 'LANGUAGE_UNAVAILABLE'],
  ])(
    '[CX-08, CX-11] in a new cell because it %s is an error, and no second cell is tried',
    async (_what, boot, code) => {
      const { driver, shared } = makeShared();
      driver.boot = boot;
      await expect(shared.boot()).rejects.toMatchObject({ code });
      await nextTurn();
      expect(disposals(driver)).toEqual([1]);
    },
  );

  test('[CX-08] because there is no cell is an error for all who waited, and the next try is a new one', async () => {
    const { driver, shared } = makeShared();
    driver.beforeCreate = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    const ends = await Promise.allSettled([shared.boot(), shared.boot()]);
    expect(ends).toMatchObject([{ reason: { message: 'away' } }, { reason: { message: 'away' } }]);
    driver.beforeCreate = () => Promise.resolve();
    expect((await shared.boot()).cell.id).toBe('1');
  });
});

describe('resting and closing', () => {
  test('[CX-14] rest leaves a cell alone that somebody is in', async () => {
    const { driver, shared } = makeShared();
    const hot = await shared.boot();
    expect([await shared.rest(), disposals(driver)]).toEqual([false, [0]]);
    await finish(hot);
    expect([await shared.rest(), disposals(driver)]).toEqual([true, [1]]);
    expect(await shared.rest()).toBe(false);
    expect((await shared.boot()).cell.id).toBe('2');
  });

  test('[CX-18] close removes the cell with everybody in it', async () => {
    const { driver, shared } = makeShared();
    const hots = await Promise.all([shared.boot(), shared.boot()]);
    await shared.close();
    expect(hots.map((hot) => programOf(hot).isEnded)).toEqual([true, true]);
    expect(driver.alive).toBe(0);
  });

  test('[CX-18] close of a cell that never came is no error', async () => {
    const { driver, shared } = makeShared();
    driver.beforeCreate = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    const boot = shared.boot().catch(() => {});
    await shared.close();
    await boot;
    expect(driver.cells).toEqual([]);
  });
});
