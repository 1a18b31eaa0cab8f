import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import type { Usage } from '../core/exec.ts';
import { SILENT_LOG } from '../core/log.ts';
import type { HotCell } from './hot-cell.ts';
import { LanguagePool } from './language-pool.ts';

const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const NOBODY = new AbortController().signal;

interface ScriptedCell extends HotCell {
  readonly state: { disposed: boolean };
  /** Ends the cell as somebody outside would. */
  lose(): void;
}

/** As much of a cell as a pool touches. */
function makeCell(name: string): ScriptedCell {
  const state = { disposed: false };
  const { promise: ended, resolve: lose } = Promise.withResolvers<void>();
  const dispose = (): Promise<void> => {
    state.disposed = true;
    lose();
    return ended;
  };
  const cell = { id: name, name, gone: ended };
  return { cell, main: { ended }, bootUsage: NO_USAGE, dispose, state, lose } as unknown as ScriptedCell;
}

/** A pool whose boots end when and how the test says. */
class ScriptedPool {
  readonly pool: LanguagePool;
  readonly cells: ScriptedCell[] = [];
  readonly #boots: { resolve(hot: HotCell): void; reject(error: Error): void }[] = [];
  now = 0;
  mayKeep = true;
  bootsStarted = 0;

  constructor(size: number) {
    this.pool = new LanguagePool({
      language: 'python',
      size,
      boot: () => {
        this.bootsStarted++;
        return new Promise((resolve, reject) => this.#boots.push({ resolve, reject }));
      },
      mayKeep: () => this.mayKeep,
      now: () => this.now,
      log: SILENT_LOG,
    });
  }

  get booting(): number {
    return this.#boots.length;
  }

  /** Ends the oldest boot without letting anybody see it yet. */
  finishBoot(): ScriptedCell {
    const cell = makeCell(`cell-${this.cells.length + 1}`);
    this.cells.push(cell);
    this.#boots.shift()?.resolve(cell);
    return cell;
  }

  async bootOne(): Promise<ScriptedCell> {
    const cell = this.finishBoot();
    await nextTurn();
    return cell;
  }

  async failOne(message = 'no such file'): Promise<void> {
    this.#boots.shift()?.reject(new HotcellError('CELL_START_FAILED', message));
    await nextTurn();
  }

  /** Starts as the server does and boots until nothing is missing. */
  async fill(): Promise<void> {
    const warm = this.pool.warmUp();
    while (this.booting > 0) await this.bootOne();
    await warm;
  }

  take(signal = NOBODY): ReturnType<LanguagePool['take']> {
    return this.pool.take(signal);
  }
}

async function makeFull(size: number): Promise<ScriptedPool> {
  const scripted = new ScriptedPool(size);
  await scripted.fill();
  return scripted;
}

describe('taking', () => {
  test('[CX-12] a ready cell is handed over at once, oldest first, and each only once', async () => {
    const { pool, cells } = await makeFull(2);
    const taken = [await pool.take(NOBODY), await pool.take(NOBODY)];
    expect(taken).toEqual(cells.map((hot) => ({ hot, warm: true })));
  });

  test('[CX-12] who finds none waits for the next cell, in order', async () => {
    const scripted = new ScriptedPool(0);
    const waiting = [scripted.take(), scripted.take()];
    expect(scripted.booting).toBe(2);
    const cells = [await scripted.bootOne(), await scripted.bootOne()];
    expect(await Promise.all(waiting)).toEqual(cells.map((hot) => ({ hot, warm: false })));
  });

  test('a cell that boots already is not booted again for who waits', async () => {
    const scripted = new ScriptedPool(1);
    scripted.pool.refill();
    const waiting = scripted.take();
    expect(scripted.bootsStarted).toBe(1);
    const cell = await scripted.bootOne();
    expect(await waiting).toEqual({ hot: cell, warm: false });
  });

  test('[CX-18] a waiter whose signal is aborted gets the reason, and the boot is kept for the pool', async () => {
    const scripted = new ScriptedPool(1);
    const caller = new AbortController();
    const waiting = scripted.take(caller.signal);
    caller.abort(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    const cell = await scripted.bootOne();
    expect(await scripted.take()).toEqual({ hot: cell, warm: true });
  });

  test('an aborted waiter does not take the place of the one behind', async () => {
    const scripted = new ScriptedPool(0);
    const caller = new AbortController();
    const aborted = scripted.take(caller.signal);
    const waiting = scripted.take();
    caller.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'CANCELLED' });
    const cell = await scripted.bootOne();
    expect(await waiting).toEqual({ hot: cell, warm: false });
  });

  test('an abort after the cell was handed over changes nothing', async () => {
    const scripted = new ScriptedPool(0);
    const caller = new AbortController();
    const waiting = scripted.take(caller.signal);
    const cell = await scripted.bootOne();
    caller.abort();
    expect((await waiting).hot).toBe(cell);
  });

  test('a signal is let go when the waiter has its cell', async () => {
    const scripted = new ScriptedPool(0);
    const { signal } = new AbortController();
    const waiting = scripted.take(signal);
    await scripted.bootOne();
    await waiting;
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

describe('refilling', () => {
  test('[CX-12] a taken cell is replaced only when its taker is done', async () => {
    const scripted = await makeFull(2);
    await scripted.take();
    expect(scripted.booting).toBe(0);
    scripted.pool.release();
    expect(scripted.booting).toBe(1);
  });

  test('never more cells than the size, however often it is asked', async () => {
    const scripted = await makeFull(3);
    for (let round = 0; round < 3; round++) scripted.pool.refill();
    expect({ ready: scripted.pool.ready, started: scripted.bootsStarted }).toEqual({ ready: 3, started: 3 });
  });

  test.each([0, 1, 2, 3, 4, 5, 6])('a refill %i steps after a boot has ended', async (steps) => {
    const scripted = await makeFull(1);
    await scripted.take();
    scripted.pool.release();
    scripted.finishBoot();
    for (let step = 0; step < steps; step++) await Promise.resolve();
    scripted.pool.refill();
    await nextTurn();
    expect(scripted.pool.ready + scripted.booting).toBe(1);
  });

  test('cells whose waiters went away are kept only up to the size', async () => {
    const scripted = new ScriptedPool(1);
    const caller = new AbortController();
    const waiting = [1, 2, 3].map(() => scripted.take(caller.signal));
    caller.abort();
    await Promise.allSettled(waiting);
    while (scripted.booting > 0) await scripted.bootOne();
    expect(scripted.pool.ready).toBe(1);
    expect(scripted.cells.filter((cell) => cell.state.disposed)).toHaveLength(2);
  });

  test('[CX-16] a waiting cell that was lost is replaced before anybody asks', async () => {
    const scripted = await makeFull(2);
    scripted.cells[0]?.lose();
    await nextTurn();
    expect({ ready: scripted.pool.ready, booting: scripted.booting }).toEqual({ ready: 1, booting: 1 });
    const replacement = await scripted.bootOne();
    await scripted.take();
    expect((await scripted.take()).hot).toBe(replacement);
  });

  test('the end of a cell that was taken is no loss', async () => {
    const scripted = await makeFull(1);
    await scripted.take();
    scripted.cells[0]?.lose();
    await nextTurn();
    expect(scripted.booting).toBe(0);
  });

  test('a budget that is used up stops refills, but not a boot that somebody waits for', async () => {
    const scripted = new ScriptedPool(4);
    scripted.mayKeep = false;
    scripted.pool.refill();
    expect(scripted.booting).toBe(0);
    const waiting = scripted.take();
    expect(scripted.booting).toBe(1);
    await scripted.bootOne();
    await expect(waiting).resolves.toMatchObject({ warm: false });
  });
});

describe('failing boots', () => {
  test('[CX-08] a failed boot rejects exactly one waiter, the first', async () => {
    const scripted = new ScriptedPool(0);
    const failure = { code: 'CELL_START_FAILED', message: 'no such file' };
    const ends = Promise.allSettled([scripted.take(), scripted.take()]);
    await scripted.failOne('no such file');
    const cell = await scripted.bootOne();
    expect(await ends).toMatchObject([{ reason: failure }, { value: { hot: cell } }]);
  });

  test('the wait doubles with each failure, up to half a minute, and ends with a success', async () => {
    const scripted = new ScriptedPool(1);
    const waits: number[] = [];
    scripted.pool.refill();
    for (let failure = 0; failure < 9; failure++) {
      await scripted.failOne();
      const failedAt = scripted.now;
      while (scripted.booting === 0) {
        scripted.now += 250;
        scripted.pool.refill();
      }
      waits.push(scripted.now - failedAt);
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
    const cell = await scripted.bootOne();
    cell.lose();
    await nextTurn();
    expect(scripted.booting).toBe(1);
  });

  test('who asks during the wait is served at once', async () => {
    const scripted = new ScriptedPool(1);
    scripted.pool.refill();
    await scripted.failOne();
    const waiting = scripted.take();
    const cell = await scripted.bootOne();
    expect((await waiting).hot).toBe(cell);
  });

  test('the reason is shown until a boot succeeds', async () => {
    const scripted = new ScriptedPool(1);
    scripted.pool.refill();
    await scripted.failOne('no python3');
    expect(scripted.pool.problem).toBe('no python3');
    const waiting = scripted.take();
    await scripted.bootOne();
    await waiting;
    expect(scripted.pool.problem).toBeUndefined();
  });

  test('[CX-11] the first boot of all tells its failure to who started the pool', async () => {
    const scripted = new ScriptedPool(2);
    const ends = Promise.allSettled([scripted.pool.warmUp()]);
    await scripted.failOne('no python3');
    expect(await ends).toMatchObject([{ reason: { message: 'no python3' } }]);
    expect({ state: scripted.pool.state, booting: scripted.booting }).toEqual({
      state: 'stopped',
      booting: 0,
    });
  });
});

describe('resting and closing', () => {
  test('[CX-14] rest removes the waiting cells, and nothing refills until somebody takes', async () => {
    const scripted = await makeFull(2);
    expect(await scripted.pool.rest()).toBe(2);
    scripted.pool.refill();
    await nextTurn();
    expect(scripted.cells.map((cell) => cell.state.disposed)).toEqual([true, true]);
    expect({ state: scripted.pool.state, booting: scripted.booting }).toEqual({
      state: 'stopped',
      booting: 0,
    });
  });

  test('[CX-14] a cell that was booting when the pool went to rest is removed', async () => {
    const scripted = new ScriptedPool(1);
    scripted.pool.refill();
    await scripted.pool.rest();
    const cell = await scripted.bootOne();
    expect({ disposed: cell.state.disposed, ready: scripted.pool.ready }).toEqual({
      disposed: true,
      ready: 0,
    });
  });

  test('[CX-18] close removes the waiting cells and those that still boot', async () => {
    const scripted = await makeFull(2);
    await scripted.take();
    scripted.pool.release();
    const closing = scripted.pool.close();
    await scripted.bootOne();
    await closing;
    expect(scripted.cells.map((cell) => cell.state.disposed)).toEqual([false, true, true]);
    scripted.pool.refill();
    expect(scripted.booting).toBe(0);
  });

  test('[CX-18] close waits for boots that are under way, because what they make must go, too', async () => {
    const scripted = new ScriptedPool(1);
    scripted.pool.refill();
    let closed = false;
    const closing = scripted.pool.close().then(() => (closed = true));
    await nextTurn();
    expect(closed).toBe(false);
    await scripted.failOne();
    await closing;
  });

  test('[CX-18] a closed pool gives no cell', async () => {
    const scripted = await makeFull(1);
    await scripted.pool.close();
    await expect((async () => scripted.take())()).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  });
});
