import { describe, expect, test } from 'vitest';
import type { ExecOutcome, KillCause, ReachableLimit } from '../../core/exec.ts';
import { parseFigures, toKilledOutcome, toOutcome, toReached, toUsage, type Figures } from './report.ts';

const parse = (text: string): Figures => parseFigures(Buffer.from(text, 'latin1'));
const figuresOf = (figures: Record<string, number>): Figures => new Map(Object.entries(figures));

describe('figures', () => {
  test('[CX-10] are numbers by name', () => {
    expect(parse('cpu_us=1500 rss=4096 wait=256')).toEqual(figuresOf({ cpu_us: 1500, rss: 4096, wait: 256 }));
  });

  test.each([
    ['nothing', ''],
    ['spaces', '    '],
    ['a negative number', 'cpu_us=-5'],
    ['a fraction', 'cpu_us=1.5'],
    ['an exponent', 'cpu_us=1e9'],
    ['another base', 'cpu_us=0xff'],
    ['no number', 'cpu_us='],
    ['a word', 'cpu_us=NaN'],
    ['infinity', 'cpu_us=Infinity'],
    ['more digits than a number holds exactly', 'cpu_us=1234567890123456'],
    ['a name with other letters', 'CPU=5 cpu-us=5 1=5'],
    ['two signs of equality', 'cpu_us=1=2'],
    ['lines', 'cpu_us=1\ncpu_us=2'],
    ['bytes', '\0\xff cpu_us=\xb2'],
  ])('[SC-03] %s says nothing', (_what, text) => {
    expect(parse(text)).toEqual(new Map());
  });

  test('[SC-03] one bad word does not spoil the others', () => {
    expect(parse('cpu_us=x wait=9 rss=-1')).toEqual(figuresOf({ wait: 9 }));
  });

  test('[SC-03] names of the object prototype are names like others', () => {
    expect(parse('__proto__=1 constructor=2').get('wait')).toBeUndefined();
    expect(({} as { wait?: number }).wait).toBeUndefined();
  });

  test('[SC-03] the largest that is taken is still exact', () => {
    expect(parse('cpu_us=999999999999999').get('cpu_us')).toBe(999_999_999_999_999);
  });
});

describe('usage', () => {
  const figures = figuresOf({ cpu_us: 1500, rss: 10, cell_cpu_us: 7000, peak: 99, full: 51 });

  test('[CX-10] of one command among others is its own', () => {
    expect(toUsage(figures, false, [])).toEqual({
      cpuMs: 1.5,
      peakMemoryBytes: 10,
      reached: [],
      diskShare: 0.51,
    });
  });

  test('[CX-10] of the only command of a cell is what the kernel counted for the cell', () => {
    expect(toUsage(figures, true, ['processes'])).toEqual({
      cpuMs: 7,
      peakMemoryBytes: 99,
      reached: ['processes'],
      diskShare: 0.51,
    });
  });

  test('[CX-10] where the kernel cannot be asked, the agent is', () => {
    expect(toUsage(figuresOf({ cpu_us: 1500, rss: 10 }), true, [])).toEqual({
      cpuMs: 1.5,
      peakMemoryBytes: 10,
      reached: [],
    });
  });

  test('[CX-10] what nobody says is not made up', () => {
    const usage = toUsage(new Map(), false, []);
    expect(usage).toEqual({ cpuMs: 0, peakMemoryBytes: undefined, reached: [] });
    expect(usage).not.toHaveProperty('diskShare');
  });
});

describe('limits reached', () => {
  test.each<[Record<string, number>, ReachableLimit[]]>([
    [{}, []],
    [{ oom: 0, pids: 0 }, []],
    [{ oom: 1 }, ['memoryBytes']],
    [{ pids: 3 }, ['processes']],
    [{ oom: 2, pids: 1 }, ['memoryBytes', 'processes']],
  ])('[CX-09] %j: %j', (figures, limits) => {
    expect(toReached(figuresOf(figures))).toEqual(limits);
  });
});

describe('the end of a program', () => {
  test.each<[string, number, ReachableLimit[], ExecOutcome]>([
    ['exit 0', 0, [], { kind: 'exited', code: 0 }],
    ['exit 1', 0x100, [], { kind: 'exited', code: 1 }],
    ['exit 255', 0xff00, [], { kind: 'exited', code: 255 }],
    ['SIGTERM', 15, [], { kind: 'signalled', signal: 15 }],
    ['SIGSEGV with a core', 0x8b, [], { kind: 'signalled', signal: 11 }],
    ['SIGKILL', 9, [], { kind: 'signalled', signal: 9 }],
    ['SIGKILL for want of memory', 9, ['memoryBytes'], { kind: 'limit', limit: 'memoryBytes' }],
    ['SIGKILL while processes ran out', 9, ['processes'], { kind: 'signalled', signal: 9 }],
    ['exit 1 after a child lacked memory', 0x100, ['memoryBytes'], { kind: 'exited', code: 1 }],
    ['SIGABRT after a child lacked memory', 6, ['memoryBytes'], { kind: 'signalled', signal: 6 }],
  ])('[CX-04, CX-09] %s', (_what, wait, reached, outcome) => {
    expect(toOutcome(figuresOf({ wait }), undefined, reached)).toEqual(outcome);
  });

  test.each<[KillCause, ExecOutcome]>([
    ['wallTimeMs', { kind: 'limit', limit: 'wallTimeMs' }],
    ['outputBytes', { kind: 'limit', limit: 'outputBytes' }],
    ['cancelled', { kind: 'cancelled' }],
  ])('[CX-05] who was killed for %s cannot have the last word', (cause, outcome) => {
    expect(toKilledOutcome(cause)).toEqual(outcome);
    for (const wait of [0, 9, 0x100])
      expect(toOutcome(figuresOf({ wait }), cause, ['memoryBytes'])).toEqual(outcome);
  });

  test('[SC-03] whatever number is claimed, the result is one that the kernel could give', () => {
    const claims = [0, 1, 127, 128, 255, 65_535, 65_536, 2 ** 31, 2 ** 32, 2 ** 32 + 9, 999_999_999_999_999];
    for (const wait of claims) {
      const outcome = toOutcome(figuresOf({ wait }), undefined, []);
      const value =
        outcome.kind === 'exited' ? outcome.code : outcome.kind === 'signalled' ? outcome.signal : -1;
      expect(value).toBeGreaterThanOrEqual(outcome.kind === 'exited' ? 0 : 1);
      expect(value).toBeLessThanOrEqual(outcome.kind === 'exited' ? 255 : 127);
    }
  });

  test('[CX-04] without a word about it the program has exited', () => {
    expect(toOutcome(new Map(), undefined, [])).toEqual({ kind: 'exited', code: 0 });
  });
});
