import { describe, expect, test } from 'vitest';
import type { Cell, CellSpec, Isolation } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import type { Enforcement } from '../core/enforcement.ts';
import type { ExecEvent, ExecOutcome, KillCause, Usage } from '../core/exec.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { Language } from '../core/language.ts';
import { DEFAULT_LIMITS } from '../core/limits.ts';
import { SILENT_LOG } from '../core/log.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { HotPool } from '../pool/hot-pool.ts';
import { READY_BYTE, encodeJobFrame } from '../pool/job-frame.ts';
import type { RunRequest, RunResult } from './run.ts';
import { OneShotRuns, type RunsOptions } from './runs.ts';

const MiB = 1024 ** 2;
const NO_USAGE: Usage = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const NEVER = new AbortController().signal;
const REQUEST: RunRequest = {
  language: 'lua',
  code: 'print(1)',
  args: [],
  env: {},
  files: [],
  stdin: new Uint8Array(),
};
const ISOLATION: Isolation = { driver: 'scripted', runtime: 'none', enforcement: {} as Enforcement };

/** As much of a cell as one run touches; what is done to it can be seen, and the test plays its program. */
class ScriptedCell {
  readonly id: string;
  readonly name: string;
  readonly workdir = '/tmp';
  readonly isolation = ISOLATION;
  readonly written: Uint8Array[] = [];
  readonly kills: KillCause[] = [];
  readonly memoryLimits: number[] = [];
  readonly main;
  disposals = 0;
  stdinClosed = false;
  bootUsage = NO_USAGE;
  readonly #events = new EventQueue<ExecEvent>();

  constructor(id: string, spec: CellSpec, play: Play) {
    this.id = id;
    this.name = spec.name;
    this.main = {
      events: this.#events,
      write: (bytes: Uint8Array) => void this.written.push(bytes),
      closeStdin: () => {
        this.stdinClosed = true;
        play(this);
      },
      kill: (cause: KillCause) => {
        this.kills.push(cause);
        this.exit(cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause });
        return Promise.resolve();
      },
      usage: () => Promise.resolve(this.bootUsage),
    };
    this.#events.push({ type: 'stdout', bytes: Uint8Array.of(READY_BYTE) });
  }

  say(text: string, type: 'stdout' | 'stderr' = 'stdout'): void {
    this.#events.push({ type, bytes: new TextEncoder().encode(text) });
  }

  exit(outcome: ExecOutcome = { kind: 'exited', code: 0 }, usage: Usage = NO_USAGE): void {
    this.#events.push({ type: 'exit', outcome, usage });
    this.#events.end();
  }

  limitMemory(bytes: number): Promise<void> {
    this.memoryLimits.push(bytes);
    return Promise.resolve();
  }

  dispose(): Promise<void> {
    this.disposals++;
    return Promise.resolve();
  }
}

type Play = (cell: ScriptedCell) => void;

/** The real use case and the real pool on cells whose programs do what the test says, one script for each. */
function makeRuns(scripts: readonly Play[], changes: Partial<RunsOptions> = {}) {
  const cells: ScriptedCell[] = [];
  const create: Driver['create'] = (spec) => {
    const play = scripts[cells.length];
    if (play === undefined) return Promise.reject(new Error('no more cells'));
    const cell = new ScriptedCell(String(cells.length + 1), spec, play);
    cells.push(cell);
    return Promise.resolve(cell as unknown as Cell);
  };
  const languages = { lua: Language.parse({ extension: 'lua', command: ['lua', '{filepath}'] }) };
  const pool = new HotPool({
    driver: { name: 'scripted', create } as Driver,
    strategy: 'fresh',
    languages,
    limits: DEFAULT_LIMITS,
    size: 0,
    booting: 8,
    memoryBytes: 0,
    idleMs: 1,
    idleCheckMs: 1,
    clock: new HandClock(),
    log: SILENT_LOG,
  });
  const reported: RunResult[] = [];
  const runs = new OneShotRuns({
    pool,
    languages,
    limits: DEFAULT_LIMITS,
    ceilings: { wallTimeMs: 60_000, memoryBytes: 1024 * MiB },
    keptBytes: 1024,
    running: 4,
    queue: 4,
    stopping: NEVER,
    log: SILENT_LOG,
    imageName: () => 'host:lua',
    onRun: (result) => void reported.push(result),
    ...changes,
  });
  const run = (
    request: Partial<RunRequest> = {},
    options: Partial<Parameters<OneShotRuns['run']>[1]> = {},
  ): Promise<RunResult> => runs.run({ ...REQUEST, ...request }, { signal: NEVER, ...options });
  return { run, runs, pool, cells, reported };
}

const succeed: Play = (cell) => {
  cell.say('out\n');
  cell.exit();
};

describe('a run', () => {
  test('[CX-01] tells what the program did and where', async () => {
    const { run, cells, reported } = makeRuns([
      (cell) => {
        cell.say('out\n');
        cell.say('err\n', 'stderr');
        cell.exit({ kind: 'exited', code: 3 }, { cpuMs: 50, peakMemoryBytes: 7, reached: ['processes'] });
      },
    ]);
    const result = await run();
    expect(result).toMatchObject({
      outcome: { kind: 'exited', code: 3 },
      exitCode: 3,
      limitHit: 'processes',
      stdout: { text: 'out\n' },
      stderr: { text: 'err\n' },
      cpuTimeMs: 50,
      peakMemoryBytes: 7,
      cellId: cells[0]?.id,
      language: 'lua',
      imageName: 'host:lua',
      isolation: ISOLATION,
      warm: false,
    });
    expect(result.filePath).toMatch(/^\/tmp\/exec_.*\.lua$/);
    expect(reported).toEqual([result]);
  });

  test('[CX-12] hands over the job, then stdin, then its end', async () => {
    const { run, cells } = makeRuns([succeed]);
    const stdin = new TextEncoder().encode('input');
    await run({ stdin });
    expect(cells[0]?.written).toEqual([encodeJobFrame(REQUEST), stdin]);
    expect(cells[0]?.stdinClosed).toBe(true);
  });

  test('[CX-12] uses a cell once and removes it', async () => {
    const { run, cells } = makeRuns([succeed, succeed]);
    expect((await run()).cellId).not.toBe((await run()).cellId);
    expect(cells.map((cell) => cell.disposals)).toEqual([1, 1]);
  });

  test('[CX-10] what booting has used is not on the bill', async () => {
    const { run, cells } = makeRuns([
      (cell) => cell.exit({ kind: 'exited', code: 0 }, { ...NO_USAGE, cpuMs: 50 }),
    ]);
    const running = run();
    await Promise.resolve();
    for (const cell of cells) cell.bootUsage = { ...NO_USAGE, cpuMs: 30 };
    expect((await running).cpuTimeMs).toBe(20);
  });

  test('[CX-06] more output than the program may write ends it', async () => {
    const { run, cells } = makeRuns([(cell) => cell.say('x'.repeat(2000))], {
      limits: { ...DEFAULT_LIMITS, outputBytes: 1999 },
    });
    const result = await run();
    expect(cells[0]?.kills).toEqual(['outputBytes']);
    expect(result).toMatchObject({ limitHit: 'outputBytes', exitCode: 137, stdout: { totalBytes: 2000 } });
  });

  test('[CX-06] output up to the limit does not', async () => {
    const script: Play = (cell) => {
      cell.say('x'.repeat(2000));
      cell.exit();
    };
    const { run, cells } = makeRuns([script], { limits: { ...DEFAULT_LIMITS, outputBytes: 2000 } });
    await run();
    expect(cells[0]?.kills).toEqual([]);
  });

  test('[CX-05] too much time ends it, with what it has said so far', async () => {
    const { run, cells } = makeRuns([(cell) => cell.say('partial')]);
    const result = await run({ timeoutMs: 10 });
    expect(cells[0]?.kills).toEqual(['wallTimeMs']);
    expect(result).toMatchObject({ exitCode: 124, limitHit: 'wallTimeMs', stdout: { text: 'partial' } });
    expect(result.stderr.text).toBe('[Execution timed out after 0.01 seconds]');
  });

  test('[WB-03] output is seen while it comes, also what the reply does not keep', async () => {
    const seen: string[] = [];
    const { run } = makeRuns([
      (cell) => {
        cell.say('a'.repeat(1024));
        cell.say('past the cap');
        cell.exit();
      },
    ]);
    const onOutput = (stream: string, bytes: Uint8Array): void =>
      void seen.push(`${stream} ${new TextDecoder().decode(bytes)}`);
    expect((await run({}, { onOutput })).stdout.truncated).toBe(true);
    expect(seen).toEqual([`stdout ${'a'.repeat(1024)}`, 'stdout past the cap']);
  });
});

describe('limits of a request', () => {
  test('[CX-07] memory that the booted interpreter holds already is refused with the least there is', async () => {
    const { run, cells } = makeRuns([succeed]);
    const ends = Promise.allSettled([run({ memoryBytes: 8 * MiB })]);
    await Promise.resolve();
    for (const cell of cells) cell.bootUsage = { ...NO_USAGE, peakMemoryBytes: 10 * MiB };
    const reason = {
      code: 'LIMIT_TOO_LOW',
      field: 'memory_mb',
      message: 'memory_mb: at least 12 for this language',
    };
    expect(await ends).toMatchObject([{ reason }]);
    expect(cells[0]).toMatchObject({ disposals: 1, memoryLimits: [], written: [] });
  });

  test.each([
    ['timeout_ms', { timeoutMs: 60_001 }, 'at most 60000 here, got 60001'],
    ['memory_mb', { memoryBytes: 1025 * MiB }, 'at most 1024 here, got 1025'],
  ])('[CX-07] %s above the ceiling is refused before any cell is used', async (field, request, message) => {
    const { run, cells } = makeRuns([succeed]);
    const refusal = await run(request).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: 'LIMIT_TOO_HIGH', status: 422, field });
    expect((refusal as Error).message).toContain(message);
    expect(cells).toHaveLength(0);
  });

  test('[CX-09] the ceiling itself may be asked for, and the cell is told', async () => {
    const { run, cells } = makeRuns([succeed]);
    await run({ timeoutMs: 60_000, memoryBytes: 1024 * MiB });
    expect(cells[0]?.memoryLimits).toEqual([1024 * MiB]);
  });

  test.each([
    ['nothing is asked for', {}],
    ['the default is asked for', { memoryBytes: DEFAULT_LIMITS.memoryBytes }],
  ])('[CX-09] the memory of a cell stays as it is when %s', async (_what, request) => {
    const { run, cells } = makeRuns([succeed]);
    await run(request);
    expect(cells[0]?.memoryLimits).toEqual([]);
  });

  test('[CX-09] defaults above the ceiling are the word of the operator', async () => {
    const { run } = makeRuns([succeed], { ceilings: { wallTimeMs: 10, memoryBytes: 8 * MiB } });
    expect(await run()).toMatchObject({ exitCode: 0 });
  });

  test.each(['cobol', 'constructor', '__proto__', ''])(
    '[CX-02] there is no language %j',
    async (language) => {
      await expect(makeRuns([]).run({ language })).rejects.toMatchObject({
        code: 'LANGUAGE_UNKNOWN',
        status: 404,
        field: 'language',
      });
    },
  );
});

test('[CX-02] the languages are listed with their state', () => {
  expect(makeRuns([]).runs.languages()).toEqual([
    {
      name: 'lua',
      extension: 'lua',
      imageName: 'host:lua',
      available: true,
      problem: undefined,
      state: 'stopped',
    },
  ]);
});
