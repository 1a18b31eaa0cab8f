import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Cell } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError } from '../core/errors.ts';
import type { ExecEvent, KillCause } from '../core/exec.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { HotPool } from '../pool/hot-pool.ts';
import { BOOTSTRAP_FAILURE, READY_BYTE } from '../pool/job-frame.ts';
import type { RunResult } from './run.ts';
import { OneShotRuns, type RunsOptions } from './runs.ts';

const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const NEVER = new AbortController().signal;

interface Program {
  say(text: string, type?: 'stdout' | 'stderr'): void;
  exit(code?: number): void;
  lose(): void;
}
type Play = (program: Program) => void;

/** What was done to the cells of one test. */
interface Seen {
  cells: number;
  disposals: number;
  reported: number;
  readonly kills: KillCause[];
}

const succeed: Play = (program) => {
  program.say('out\n');
  program.exit();
};
const lose: Play = (program) => program.lose();

/** As much of a cell as one run touches; its program follows the script once it has its job. */
function makeCell(id: string, play: Play, seen: Seen): Cell {
  const events = new EventQueue<ExecEvent>();
  const program: Program = {
    say: (text, type = 'stdout') => events.push({ type, bytes: new TextEncoder().encode(text) }),
    exit: (code = 0) => {
      events.push({ type: 'exit', outcome: { kind: 'exited', code }, usage: NO_USAGE });
      events.end();
    },
    lose: () => events.fail(new HotcellError('CELL_LOST', 'ended from outside')),
  };
  events.push({ type: 'stdout', bytes: Uint8Array.of(READY_BYTE) });
  const kill = (cause: KillCause): Promise<void> => {
    seen.kills.push(cause);
    events.push({ type: 'exit', outcome: { kind: 'cancelled' }, usage: NO_USAGE });
    return Promise.resolve();
  };
  const usage = () => Promise.resolve(NO_USAGE);
  const main = { events, write() {}, closeStdin: () => play(program), kill, usage };
  const dispose = (): Promise<void> => {
    seen.disposals++;
    return Promise.resolve();
  };
  return {
    id,
    name: id,
    workdir: '/tmp',
    main,
    dispose,
  } as unknown as Cell;
}

/** The real use case and the real pool on scripted cells, one script for each. */
function makeRuns(scripts: readonly Play[], changes: Partial<RunsOptions> = {}) {
  const seen: Seen = { cells: 0, disposals: 0, reported: 0, kills: [] };
  const create: Driver['create'] = () => {
    const play = scripts[seen.cells];
    if (play === undefined) return Promise.reject(new HotcellError('CELL_START_FAILED', 'no more cells'));
    return Promise.resolve(makeCell(String(++seen.cells), play, seen));
  };
  const shared = {
    languages: { lua: Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] }) },
    limits: DEFAULT_LIMITS,
    log: SILENT_LOG,
  };
  const pool = new HotPool({
    ...shared,
    driver: { name: 'scripted', create } as Driver,
    strategy: 'fresh',
    size: 0,
    booting: 8,
    memoryBytes: 0,
    idleMs: 1,
    idleCheckMs: 1,
    clock: new HandClock(),
  });
  const runs = new OneShotRuns({
    ...shared,
    pool,
    ceilings: { wallTimeMs: 60_000, memoryBytes: 2 ** 30 },
    keptBytes: 1024,
    running: 4,
    queue: 4,
    stopping: NEVER,
    imageName: () => 'host:lua',
    onRun: () => void seen.reported++,
    ...changes,
  });
  const request = { language: 'lua', code: '', args: [], env: {}, files: [], stdin: new Uint8Array() };
  const run = (options: Partial<Parameters<OneShotRuns['run']>[1]> = {}): Promise<RunResult> =>
    runs.run(request, { signal: NEVER, ...options });
  return { run, runs, seen };
}

describe('a lost cell', () => {
  test('[CX-16] is replaced by another one, and the caller sees nothing of it', async () => {
    const { run, seen } = makeRuns([lose, succeed]);
    expect(await run()).toMatchObject({ cellId: '2', stdout: { text: 'out\n' } });
    expect(seen).toEqual({ cells: 2, disposals: 2, reported: 1, kills: [] });
  });

  test('[CX-16] is replaced twice at most', async () => {
    const { run, seen } = makeRuns([lose, lose, lose, succeed]);
    await expect(run()).rejects.toMatchObject({ code: 'CELL_LOST', status: 503 });
    expect(seen.cells).toBe(3);
  });

  test('[CX-16] is not replaced when somebody has seen output of it', async () => {
    const { run, seen } = makeRuns([
      (program) => {
        program.say('half');
        program.lose();
      },
      succeed,
    ]);
    await expect(run({ onOutput: () => {} })).rejects.toMatchObject({ code: 'CELL_LOST' });
    expect(seen.cells).toBe(1);
  });

  test('[CX-16] is replaced when its output went nowhere', async () => {
    const { run } = makeRuns([
      (program) => {
        program.say('half');
        program.lose();
      },
      succeed,
    ]);
    expect(await run()).toMatchObject({ stdout: { text: 'out\n' } });
  });

  test('[CX-16] is not replaced for a caller who has gone', async () => {
    const caller = new AbortController();
    const { run, seen } = makeRuns([
      (program) => {
        caller.abort();
        program.lose();
      },
      succeed,
    ]);
    await expect(run({ signal: caller.signal })).rejects.toBeInstanceOf(HotcellError);
    expect(seen.cells).toBe(1);
  });

  test('[CX-16] a cell that does not start gives its place back', async () => {
    const { run, runs } = makeRuns([]);
    await expect(run()).rejects.toMatchObject({ code: 'CELL_START_FAILED' });
    await nextTurn();
    expect(runs.load).toEqual({ running: 0, waiting: 0 });
  });

  test('[CX-08] the next request is served', async () => {
    const { run } = makeRuns([lose, lose, lose, succeed]);
    await expect(run()).rejects.toMatchObject({ code: 'CELL_LOST' });
    expect(await run()).toMatchObject({ exitCode: 0 });
  });
});

/** As a bootstrap does that cannot read its job, and as any program can. */
const failToBoot: Play = (program) => {
  program.say('hotcell: cannot read the job\n', 'stderr');
  program.exit(BOOTSTRAP_FAILURE.exitCode);
};

describe('a cell that cannot take its job', () => {
  test('[CX-16] is replaced by another one', async () => {
    const { run } = makeRuns([failToBoot, succeed]);
    expect(await run()).toMatchObject({ cellId: '2', exitCode: 0, stderr: { text: '' } });
  });

  test('[CX-04] a program that only says so gets its result in the end', async () => {
    const { run } = makeRuns([failToBoot, failToBoot, failToBoot]);
    expect(await run()).toMatchObject({ exitCode: 70, stderr: { text: 'hotcell: cannot read the job\n' } });
  });

  test('[CX-04, WB-03] a program that says so to a listener gets its result, too', async () => {
    const { run } = makeRuns([failToBoot]);
    expect(await run({ onOutput: () => {} })).toMatchObject({ exitCode: 70 });
  });

  test.each<[string, Play]>([
    ['another exit code', (program) => [program.say('hotcell: x', 'stderr'), program.exit(71)]],
    ['other words', (program) => [program.say('x', 'stderr'), program.exit(70)]],
    [
      'output before it',
      (program) => [program.say('x'), program.say('hotcell: x', 'stderr'), program.exit(70)],
    ],
  ])('[CX-04] %s is a result at once', async (_what, play) => {
    const { run, seen } = makeRuns([play, succeed]);
    await run();
    expect(seen.cells).toBe(1);
  });
});

describe('cancelling', () => {
  test('[CX-18] a caller who goes away ends the program', async () => {
    const caller = new AbortController();
    const { run, runs, seen } = makeRuns([() => queueMicrotask(() => caller.abort())]);
    await expect(run({ signal: caller.signal })).rejects.toMatchObject({ code: 'CANCELLED' });
    await nextTurn();
    expect(seen).toEqual({ cells: 1, disposals: 1, reported: 0, kills: ['cancelled'] });
    expect(runs.load).toEqual({ running: 0, waiting: 0 });
  });

  test('[CX-18] a server that stops says so to who is running', async () => {
    const stopping = new AbortController();
    const reason = new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    const stop: Play = () => queueMicrotask(() => stopping.abort(reason));
    const { run, seen } = makeRuns([stop], { stopping: stopping.signal });
    await expect(run()).rejects.toBe(reason);
    expect(seen.kills).toEqual(['cancelled']);
  });

  test('[CX-18] a server that has stopped makes no cell', async () => {
    const reason = new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    const { run, seen } = makeRuns([succeed], { stopping: AbortSignal.abort(reason) });
    await expect(run()).rejects.toBe(reason);
    expect(seen.cells).toBe(0);
  });

  test('[CX-18] a server that stops says so to who waits', async () => {
    const stopping = new AbortController();
    const { run } = makeRuns([() => {}], { stopping: stopping.signal, running: 1 });
    const outcomes = Promise.allSettled([run(), run()]);
    await nextTurn();
    stopping.abort(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
    const codes = (await outcomes).map(
      (end) => end.status === 'rejected' && (end.reason as HotcellError).code,
    );
    expect(codes).toEqual(['SHUTTING_DOWN', 'SHUTTING_DOWN']);
  });

  test('[CX-18] a program that ended before the caller went away has a result', async () => {
    const caller = new AbortController();
    const { run } = makeRuns([
      (program) => {
        succeed(program);
        caller.abort();
      },
    ]);
    expect(await run({ signal: caller.signal })).toMatchObject({ exitCode: 0 });
  });
});
