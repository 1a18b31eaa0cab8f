import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Cell } from '../core/cell.ts';
import type { Nest, NestSpec, NestedRun } from '../core/driver.ts';
import { HotcellError, type ErrorCode } from '../core/errors.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import type { HotCell } from './hot-cell.ts';
import { NestedCells } from './nested-cells.ts';
import { ScriptedCell, type ScriptedProgram } from './scripted-driver.double.ts';

const LUA = Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] });
const FORKING = Language.parse({ ...LUA, hot: { command: ['lua', '-w', '{filepath}'], forks: true } });

class ScriptedNest implements Nest {
  readonly id: string;
  readonly spec: NestSpec;
  readonly gone: Promise<void>;
  readonly begun: { readonly slot: number; readonly run: NestedRun; readonly cell: ScriptedCell }[] = [];
  runsLeft = 60_000;
  disposals = 0;
  markGone: () => void = () => {};

  constructor(id: string, spec: NestSpec) {
    this.id = id;
    this.spec = spec;
    this.gone = new Promise((resolve) => (this.markGone = resolve));
  }

  begin(slot: number, run: NestedRun): Promise<Cell> {
    const spec = {
      name: run.name,
      kind: 'run',
      limits: this.spec.limits,
      main: { argv: ['lua'], env: {} },
    } as const;
    const cell = new ScriptedCell(`${this.id}-${this.begun.length}`, spec, (program) => program.sayReady());
    this.begun.push({ slot, run, cell });
    return Promise.resolve(cell);
  }

  dispose(): Promise<void> {
    this.disposals++;
    this.markGone();
    return Promise.resolve();
  }
}

function make({ entry = LUA, slots = 2, runs = 100, ageMs = 60_000 } = {}) {
  const clock = new HandClock();
  const nests: ScriptedNest[] = [];
  const state = { isAwaited: true, failure: undefined as HotcellError | undefined, alone: 0 };
  const cells = new NestedCells({
    slots,
    runs,
    ageMs,
    driver: {
      openNest: (spec) => {
        if (state.failure !== undefined) return Promise.reject(state.failure);
        const nest = new ScriptedNest(`nest${nests.length}`, spec);
        nests.push(nest);
        return Promise.resolve(nest);
      },
    },
    language: { name: 'lua', entry },
    limits: DEFAULT_LIMITS,
    clock,
    log: SILENT_LOG,
    inTurn: (task) => task(),
    isAwaited: () => state.isAwaited,
    bootAlone: () => {
      state.alone++;
      return Promise.reject(new HotcellError('INTERNAL', 'alone'));
    },
  });
  return { cells, clock, nests, state };
}

async function end(hot: HotCell | undefined): Promise<void> {
  const program = hot?.main as ScriptedProgram | undefined;
  program?.exit({ kind: 'exited', code: 0 });
  await nextTurn();
}

const boots = (cells: NestedCells, count: number): Promise<HotCell[]> =>
  Promise.all(Array.from({ length: count }, () => cells.boot()));
const failure = (code: ErrorCode): HotcellError => new HotcellError(code, `because of ${code}`);

describe('slots', () => {
  test('[CX-12] one cell serves one run after the other, each in a slot that is free', async () => {
    const { cells, nests } = make();
    const [first, second] = await boots(cells, 2);
    await end(first);
    const third = await cells.boot();
    expect(nests).toHaveLength(1);
    expect(nests[0]?.begun.map(({ slot }) => slot)).toEqual([1, 0, 1]);
    expect(new Set([first, second, third].map((hot) => hot?.cell.id)).size).toBe(3);
  });

  test('[CX-08] whoever finds no slot waits for one; while somebody waits behind, a second cell is opened', async () => {
    const { cells, clock, nests } = make();
    await boots(cells, 2);
    const waiting = boots(cells, 3);
    await nextTurn();
    expect(nests).toHaveLength(1);
    await clock.advance(100);
    await waiting;
    expect(nests).toHaveLength(3);
  });

  test('a mere refill opens no second cell', async () => {
    const { cells, clock, nests, state } = make();
    const [first] = await boots(cells, 2);
    state.isAwaited = false;
    const waiting = cells.boot();
    await clock.advance(1000);
    await nextTurn();
    expect(nests).toHaveLength(1);
    await end(first);
    expect((await waiting).cell.id).toBe('nest0-2');
  });

  test('a cell that only a burst needed is given up when nobody has used it for a while', async () => {
    const { cells, clock, nests } = make();
    await boots(cells, 2);
    const more = boots(cells, 2);
    await clock.advance(100);
    for (const hot of await more) await end(hot);
    cells.tend();
    await clock.advance(11_000);
    cells.tend();
    expect(nests.map(({ disposals }) => disposals)).toEqual([0, 1]);
  });
});

describe('a run', () => {
  test('[CX-02] waits behind its walls, or is a copy of the interpreter that forks, with one file for all', async () => {
    const plain = make();
    await plain.cells.boot();
    expect(plain.nests[0]?.begun[0]?.run).toMatchObject({
      mode: 'late',
      command: { argv: ['lua', expect.stringMatching(/^\{workdir\}\/exec_.*\.lua$/)] },
    });
    const forking = make({ entry: FORKING });
    const [first, second] = await boots(forking.cells, 2);
    expect(forking.nests[0]?.begun[0]?.run).toEqual({ name: expect.any(String), mode: 'fork' });
    expect(forking.nests[0]?.spec.forker?.argv[0]).toBe('lua');
    expect(first?.filePath).toBe(second?.filePath);
  });
});

describe('generations', () => {
  test('[SC-03] after so many runs a new cell takes over, without anybody waiting for it', async () => {
    const { cells, nests } = make({ runs: 2 });
    const [first, second] = await boots(cells, 2);
    await end(first);
    await nextTurn();
    expect(nests).toHaveLength(2);
    const third = await cells.boot();
    expect(third.cell.id).toBe('nest1-0');
    expect(nests[0]?.disposals).toBe(0);
    await end(second);
    expect(nests[0]?.disposals).toBe(1);
  });

  test('[SC-03] the same after so much time', async () => {
    const { cells, clock, nests } = make({ ageMs: 1000 });
    const first = await cells.boot();
    await clock.advance(1000);
    await end(first);
    await nextTurn();
    expect(nests.map(({ disposals }) => disposals)).toEqual([1, 0]);
  });

  test('[SC-03] a cell without identities left is used no more, whatever else there is', async () => {
    const { cells, nests } = make();
    const first = await cells.boot();
    for (const nest of nests) nest.runsLeft = 1;
    await end(first);
    expect((await cells.boot()).cell.id).toBe('nest1-0');
  });
});

describe('trouble', () => {
  test('[CX-12] where no walls can be made inside a cell, each run has one of its own, for good and with a reason', async () => {
    const { cells, state } = make();
    state.failure = failure('POLICY_UNENFORCEABLE');
    await expect(cells.boot()).rejects.toMatchObject({ message: 'alone' });
    expect(cells.problem).toBe('because of POLICY_UNENFORCEABLE');
    state.failure = undefined;
    await expect(cells.boot()).rejects.toMatchObject({ message: 'alone' });
    expect(state.alone).toBe(2);
  });

  test('an engine that is away decides nothing', async () => {
    const { cells, state } = make();
    state.failure = failure('DRIVER_UNAVAILABLE');
    await expect(cells.boot()).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
    state.failure = undefined;
    await cells.boot();
    expect(cells.problem).toBeUndefined();
  });

  test('[CX-08] a cell that is lost is replaced, and what waits in it is not given to anybody', async () => {
    const { cells, nests } = make();
    const hot = await cells.boot();
    nests[0]?.markGone();
    await nextTurn();
    expect(hot.spoiled).toBe(true);
    expect((await cells.boot()).cell.id).toBe('nest1-0');
  });

  test('[SC-02] closing removes every cell, and whoever waits is told', async () => {
    const { cells, nests } = make();
    await boots(cells, 2);
    const waiting = cells.boot();
    waiting.catch(() => {});
    await cells.close();
    await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    expect(nests.map(({ disposals }) => disposals)).toEqual([1]);
  });
});
