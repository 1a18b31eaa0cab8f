import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { HotPool } from '../pool/hot-pool.ts';
import { BOOTSTRAP_FAILURE } from '../pool/job-frame.ts';
import { ScriptedDriver, type ScriptedProgram } from '../pool/scripted-driver.double.ts';
import type { Strategy } from '../pool/strategy.ts';
import type { RunPackages } from './run-packages.ts';
import type { RunRequest, RunResult } from './run.ts';
import { OneShotRuns } from './runs.ts';

const MiB = 1024 ** 2;
const NEVER = new AbortController().signal;
const FILES = [{ path: 'data.txt', content: new Uint8Array() }];

type Play = (program: ScriptedProgram) => void;
const succeed: Play = (program) => program.exit({ kind: 'exited', code: 0 });
const lose: Play = (program) => program.lose();
const failToBoot: Play = (program) => {
  program.say(BOOTSTRAP_FAILURE.words);
  program.exit({ kind: 'exited', code: BOOTSTRAP_FAILURE.exitCode });
};

/** The real use case and the real pool; the programs that get a job do what the scripts say, one after the other. */
function makeRuns(strategy: Strategy, scripts: readonly Play[] = [], packages?: RunPackages) {
  const driver = new ScriptedDriver();
  const left = [...scripts];
  driver.boot = (program) => {
    program.onJob = () => (left.shift() ?? succeed)(program);
    program.sayReady();
  };
  const common = {
    languages: { lua: Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] }) },
    limits: DEFAULT_LIMITS,
    log: SILENT_LOG,
  };
  const pool = new HotPool({
    ...common,
    driver,
    strategy,
    size: 0,
    booting: 8,
    memoryBytes: 0,
    idleMs: 1,
    idleCheckMs: 1,
    clock: new HandClock(),
  });
  const runs = new OneShotRuns({
    ...common,
    pool,
    ceilings: { wallTimeMs: 60_000, memoryBytes: 1024 * MiB },
    keptBytes: 1024,
    running: 8,
    queue: 8,
    stopping: NEVER,
    ...(packages === undefined ? {} : { packages }),
    imageName: () => 'host:lua',
    onRun: () => {},
  });
  const request = { language: 'lua', code: '', args: [], env: {}, files: [], stdin: new Uint8Array() };
  const run = async (changes: Partial<RunRequest> = {}, signal = NEVER): Promise<RunResult> => {
    const result = await runs.run({ ...request, ...changes }, { signal });
    // What a run does after its reply is on the way.
    await nextTurn();
    await nextTurn();
    return result;
  };
  return { driver, run };
}

describe.each(['fresh', 'shared'] as const)('[MC-11] a run with packages, strategy %s,', (strategy) => {
  const folders = [{ name: 'packages', folder: '/srv/packages', at: '/packages' }];
  const listed = [{ name: 'six', version: '1.0.0', from: 'index.example.org', direct: true }];

  test('has a cell of its own that sees them, and says which', async () => {
    const ready = { folders, env: { LUA_PATH: '/packages/x' }, packages: listed };
    const { driver, run } = makeRuns(strategy, [], { prepare: () => Promise.resolve(ready) });
    const { packages, cellId } = await run();
    expect([packages, cellId]).toEqual([listed, '1']);
    expect(driver.specs.map((spec) => spec.folders)).toEqual([folders]);
    expect(disposals(driver)).toEqual([1]);
  });

  test('that needs none is as any other', async () => {
    const { driver, run } = makeRuns(strategy, [], { prepare: () => Promise.resolve(undefined) });
    expect((await run()).packages).toBeUndefined();
    expect(driver.specs[0]?.folders).toBeUndefined();
  });

  test('that cannot be had does not begin', async () => {
    const problem = new HotcellError('PACKAGE_UNAVAILABLE', 'six cannot be installed');
    const { driver, run } = makeRuns(strategy, [], { prepare: () => Promise.reject(problem) });
    await expect(run()).rejects.toBe(problem);
    expect(driver.cells).toEqual([]);
  });
});

/** For each cell: whether it was made for one program. */
const isOwn = (driver: ScriptedDriver): boolean[] => driver.cells.map((cell) => cell.main !== undefined);
const disposals = (driver: ScriptedDriver): number[] => driver.cells.map((cell) => cell.disposals);

describe('a run, strategy shared,', () => {
  test('[CX-12] is in the one cell, with others', async () => {
    const { driver, run } = makeRuns('shared');
    const results = [await run(), ...(await Promise.all([run(), run()]))];
    expect(results.map(({ cellId }) => cellId)).toEqual(['1', '1', '1']);
    expect([isOwn(driver), disposals(driver)]).toEqual([[false], [0]]);
  });

  test('[CX-12] with files beside the code has a cell of its own, which is gone afterwards', async () => {
    const { driver, run } = makeRuns('shared');
    await run();
    expect((await run({ files: FILES })).cellId).toBe('2');
    expect([isOwn(driver), disposals(driver)]).toEqual([
      [false, true],
      [0, 1],
    ]);
    expect(driver.specs[1]?.limits).toEqual(DEFAULT_LIMITS);
    expect((await run()).cellId).toBe('1');
  });

  test.each([
    ['more', 512 * MiB],
    ['less', 64 * MiB],
    ['as much as usual', DEFAULT_LIMITS.memoryBytes],
  ])('[CX-09] that asks for %s memory has a cell of its own, made with it', async (_what, memoryBytes) => {
    const { driver, run } = makeRuns('shared');
    await run({ memoryBytes });
    expect(isOwn(driver)).toEqual([true]);
    expect(driver.specs[0]?.limits).toEqual({ ...DEFAULT_LIMITS, memoryBytes });
    expect([driver.cells[0]?.memoryLimits, disposals(driver)]).toEqual([[], [1]]);
  });

  test('[CX-07, CX-09] that asks for less than its interpreter holds is refused, and the cell is gone', async () => {
    const { driver, run } = makeRuns('shared');
    driver.peakMemoryBytes = 10 * MiB;
    await expect(run({ memoryBytes: 8 * MiB })).rejects.toMatchObject({
      code: 'LIMIT_TOO_LOW',
      field: 'memory_mb',
    });
    await nextTurn();
    expect(disposals(driver)).toEqual([1]);
  });

  test.each([
    ['is lost', lose],
    ['cannot take its job', failToBoot],
  ])(
    '[CX-16] that %s runs again in a cell of its own, and nobody else is sent to the first',
    async (_what, play) => {
      const { driver, run } = makeRuns('shared', [play]);
      expect(await run()).toMatchObject({ cellId: '2', exitCode: 0 });
      expect([isOwn(driver), disposals(driver)]).toEqual([
        [false, true],
        [1, 1],
      ]);
      expect((await run()).cellId).toBe('3');
      expect(isOwn(driver)).toEqual([false, true, false]);
    },
  );

  test('[CX-16] that is lost does not end its neighbours', async () => {
    let neighbour: ScriptedProgram | undefined;
    const { driver, run } = makeRuns('shared', [(program) => (neighbour = program), lose]);
    const staying = run();
    await nextTurn();
    await run();
    expect([neighbour?.isEnded, disposals(driver)[0]]).toEqual([false, 0]);
    neighbour?.exit({ kind: 'exited', code: 4 });
    expect(await staying).toMatchObject({ cellId: '1', exitCode: 4 });
    expect(disposals(driver)[0]).toBe(1);
  });

  test('[CX-16] that is lost each time is an error in the end, and the next is served', async () => {
    const { driver, run } = makeRuns('shared', [lose, lose, lose]);
    await expect(run()).rejects.toMatchObject({ code: 'CELL_LOST' });
    expect(isOwn(driver)).toEqual([false, true, true]);
    expect(await run()).toMatchObject({ exitCode: 0 });
  });

  test.each<[string, Play, object]>([
    ['fails', (program) => program.exit({ kind: 'exited', code: 1 }), { exitCode: 1 }],
    ['runs out of time', () => {}, { exitCode: 124 }],
    [
      'runs out of memory',
      (program) => program.exit({ kind: 'limit', limit: 'memoryBytes' }),
      { exitCode: 137 },
    ],
  ])('[CX-04, CX-12] that %s leaves the cell to others', async (_what, play, result) => {
    const { driver, run } = makeRuns('shared', [play]);
    expect(await run({ timeoutMs: 20 })).toMatchObject(result);
    expect((await run()).cellId).toBe('1');
    expect(disposals(driver)).toEqual([0]);
  });

  test('[CX-18] whose caller goes away ends alone', async () => {
    const caller = new AbortController();
    const { driver, run } = makeRuns('shared', [() => queueMicrotask(() => caller.abort())]);
    await expect(run({}, caller.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
    expect((await run()).cellId).toBe('1');
    expect(driver.cells[0]?.programs[0]?.kills[0]).toBe('cancelled');
  });
});

describe('a run, strategy fresh,', () => {
  test.each([
    ['with files', { files: FILES }],
    ['with memory of its own', { memoryBytes: 64 * MiB }],
    ['with nothing special', {}],
  ])('[CX-12] %s has a single-use cell like any other', async (_what, request) => {
    const { driver, run } = makeRuns('fresh');
    await run(request);
    expect([isOwn(driver), disposals(driver)]).toEqual([[true], [1]]);
    expect(driver.specs[0]?.limits).toEqual(DEFAULT_LIMITS);
    expect(driver.cells[0]?.memoryLimits).toEqual('memoryBytes' in request ? [64 * MiB] : []);
  });

  test('[CX-09] with memory of its own, where a limit cannot be changed, has a cell made with it', async () => {
    const { driver, run } = makeRuns('fresh');
    driver.canLimitMemory = false;
    const result = await run({ memoryBytes: 64 * MiB });
    expect(driver.specs.map(({ limits }) => limits.memoryBytes)).toEqual([
      DEFAULT_LIMITS.memoryBytes,
      64 * MiB,
    ]);
    expect([result.cellId, disposals(driver)]).toEqual(['2', [1, 1]]);
  });
});
