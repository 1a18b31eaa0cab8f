import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import type { ExecEvent, ReachableLimit } from '../../core/exec.ts';
import { AgentExec, type AgentExecParts } from './agent-exec.ts';
import type { Figures } from './report.ts';

const KiB = 1024;
const KILL_MS = 3000;
const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const LOST = new HotcellError('CELL_LOST', 'gone');
const figuresOf = (figures: Record<string, number>): Figures => new Map(Object.entries(figures));

/** A command whose agent is the test. */
function makeExec(changes: Partial<AgentExecParts> = {}) {
  const sent: string[] = [];
  const grants: number[] = [];
  let questions = 0;
  let surrenders = 0;
  const exec = new AgentExec({
    id: 1,
    alone: false,
    terminal: false,
    lasting: false,
    fromByte: 0,
    killMs: 3000,
    send: (type, payload) => {
      if (type === 'C') grants.push(Buffer.from(payload ?? []).readUInt32BE());
      sent.push(payload === undefined || type === 'C' ? type : `${type} ${Buffer.from(payload).toString()}`);
      return true;
    },
    ask: () => {
      questions++;
      return Promise.resolve(figuresOf({ cpu_us: 2000, rss: 5 }));
    },
    reached: () => [],
    giveUp: () => {
      surrenders++;
      return Promise.resolve();
    },
    ...changes,
  });
  const reader = exec.events[Symbol.asyncIterator]();
  const read = async (): Promise<ExecEvent> => {
    const { value, done } = await reader.next();
    if (done === true) throw new Error('there is nothing more');
    return value;
  };
  return { exec, sent, grants, read, questions: () => questions, surrenders: () => surrenders };
}

async function isEnded(exec: AgentExec): Promise<boolean> {
  return Promise.race([exec.ended.then(() => true), Promise.resolve().then(() => false)]);
}

describe('credit', () => {
  test('[CX-06, RS-22] is granted when the reader comes back for more, not for what has come or was handed out', async () => {
    const { exec, grants, read } = makeExec();
    for (let count = 0; count < 4; count++) exec.output('stdout', Buffer.alloc(64 * KiB));
    expect(grants).toEqual([]);
    await read();
    // Whoever has it in hand may not have written it down yet, and the agent forgets what it is paid for.
    expect(grants).toEqual([]);
    await read();
    expect(grants).toEqual([64 * KiB]);
    await read();
    expect(grants).toEqual([64 * KiB, 64 * KiB]);
  });

  test('[CX-06] of small pieces is granted together, both streams in one account, to the byte', async () => {
    const { exec, grants, read } = makeExec();
    const sizes = [1, 30_000, 30_000, 10_000, 64 * KiB - 1, 2, 0];
    for (const [at, size] of sizes.entries())
      exec.output(at % 2 === 0 ? 'stdout' : 'stderr', Buffer.alloc(size));
    for (let count = 0; count < sizes.length; count++) await read();
    expect(grants).toEqual([70_001, 64 * KiB + 1]);
  });

  test('[CX-06] below the least grant is kept for later', async () => {
    const { exec, grants, read } = makeExec();
    for (const size of [64 * KiB - 1, 1, 1]) exec.output('stdout', Buffer.alloc(size));
    await read();
    await read();
    expect(grants).toEqual([]);
    await read();
    expect(grants).toEqual([64 * KiB]);
  });

  test('[RS-22] is granted after the end, too: the agent keeps what was not', async () => {
    const { exec, grants, read } = makeExec();
    exec.output('stdout', Buffer.alloc(128 * KiB));
    exec.exited(figuresOf({ wait: 0 }));
    expect((await read()).type).toBe('stdout');
    expect((await read()).type).toBe('exit');
    expect(grants).toEqual([128 * KiB]);
  });
});

describe('a command that ends', () => {
  test('[CX-04, CX-10] tells how, after all its output, and what it used', async () => {
    const { exec, read } = makeExec({ reached: (): ReachableLimit[] => ['processes'] });
    exec.output('stdout', Buffer.from('out'));
    exec.output('stderr', Buffer.from('err'));
    exec.exited(figuresOf({ wait: 0x300, cpu_us: 1000, rss: 7, oom: 1 }));
    expect([await read(), await read()]).toEqual([
      { type: 'stdout', bytes: Buffer.from('out') },
      { type: 'stderr', bytes: Buffer.from('err') },
    ]);
    expect(await read()).toEqual({
      type: 'exit',
      outcome: { kind: 'exited', code: 3 },
      usage: { cpuMs: 1, peakMemoryBytes: 7, reached: ['memoryBytes', 'processes'] },
    });
    await expect(read()).rejects.toThrow('nothing more');
    expect(await isEnded(exec)).toBe(true);
  });

  test('[CX-09] memory that only the host can count makes an end with SIGKILL one of memory', async () => {
    const { exec, read } = makeExec({ reached: (): ReachableLimit[] => ['memoryBytes'] });
    exec.exited(figuresOf({ wait: 9 }));
    expect(await read()).toMatchObject({ outcome: { kind: 'limit', limit: 'memoryBytes' } });
  });

  test('takes nothing more', () => {
    const { exec, sent } = makeExec();
    exec.write(Buffer.from('before'));
    exec.closeStdin();
    exec.exited(figuresOf({ wait: 0 }));
    exec.write(Buffer.from('after'));
    exec.closeStdin();
    void exec.kill('cancelled');
    expect(sent).toEqual(['I before', 'E']);
  });

  test('[CX-04] keeps its first end, whatever comes later', async () => {
    const { exec, read } = makeExec();
    exec.exited(figuresOf({ wait: 0x100 }));
    exec.lost(LOST);
    exec.failed('no');
    exec.exited(figuresOf({ wait: 0 }));
    expect(await read()).toMatchObject({ outcome: { kind: 'exited', code: 1 } });
    await expect(read()).rejects.toThrow('nothing more');
  });

  test('[CX-08] that never started is a failure of ours, in the words of the agent', async () => {
    const { exec, read } = makeExec();
    exec.failed('fork: Resource temporarily unavailable');
    await expect(read()).rejects.toMatchObject({
      code: 'CELL_START_FAILED',
      message: 'the command did not start: fork: Resource temporarily unavailable',
    });
    expect(await isEnded(exec)).toBe(true);
  });
});

describe('usage', () => {
  test('[CX-10] is asked for while the command runs, and known afterwards', async () => {
    const { exec, questions } = makeExec();
    expect(await exec.usage()).toEqual({ cpuMs: 2, peakMemoryBytes: 5, reached: [] });
    exec.exited(figuresOf({ wait: 0, cpu_us: 9000, rss: 6, full: 3 }));
    expect(await exec.usage()).toEqual({ cpuMs: 9, peakMemoryBytes: 6, reached: [], diskShare: 0.03 });
    expect(questions()).toBe(1);
  });

  test('[CX-10] of an agent that does not answer is nothing', async () => {
    const { exec } = makeExec({ ask: () => Promise.resolve(undefined) });
    expect(await exec.usage()).toEqual(NO_USAGE);
  });
});

describe('a loss', () => {
  test('[CX-16] is an error for who reads, after what was said before', async () => {
    const { exec, read } = makeExec();
    exec.output('stdout', Buffer.from('half'));
    exec.lost(LOST);
    expect(await read()).toMatchObject({ type: 'stdout' });
    await expect(read()).rejects.toBe(LOST);
    expect(await isEnded(exec)).toBe(true);
  });

  test('[CX-05] of who was to be killed is what the killer wanted', async () => {
    const { exec, read } = makeExec();
    await exec.kill('wallTimeMs');
    exec.lost(LOST);
    expect(await read()).toEqual({
      type: 'exit',
      outcome: { kind: 'limit', limit: 'wallTimeMs' },
      usage: NO_USAGE,
    });
    await expect(read()).rejects.toThrow('nothing more');
  });
});

describe('a kill', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('[CX-05] is asked for at once; the first cause is the one that counts', async () => {
    const { exec, sent, read } = makeExec();
    await exec.kill('wallTimeMs');
    await exec.kill('cancelled');
    expect(sent).toEqual(['K', 'K']);
    exec.exited(figuresOf({ wait: 0, cpu_us: 1000, rss: 1 }));
    expect(await read()).toEqual({
      type: 'exit',
      outcome: { kind: 'limit', limit: 'wallTimeMs' },
      usage: { cpuMs: 1, peakMemoryBytes: 1, reached: [] },
    });
  });

  test('[CX-05] that works leaves the cell alone', async () => {
    const { exec, surrenders } = makeExec();
    await exec.kill('wallTimeMs');
    await vi.advanceTimersByTimeAsync(KILL_MS - 1);
    exec.exited(figuresOf({ wait: 9 }));
    await vi.advanceTimersByTimeAsync(KILL_MS);
    expect({ surrenders: surrenders(), timers: vi.getTimerCount() }).toEqual({ surrenders: 0, timers: 0 });
  });

  test('[CX-05] that does not work ends the cell, once, counted from the first', async () => {
    const { exec, surrenders, read } = makeExec();
    await exec.kill('outputBytes');
    await vi.advanceTimersByTimeAsync(KILL_MS - 1);
    expect(surrenders()).toBe(0);
    await exec.kill('outputBytes');
    await vi.advanceTimersByTimeAsync(1);
    expect(surrenders()).toBe(1);
    expect(await read()).toMatchObject({ outcome: { kind: 'limit', limit: 'outputBytes' } });
    await vi.advanceTimersByTimeAsync(10 * KILL_MS);
    expect(surrenders()).toBe(1);
  });

  test('[CX-08] with a cell that cannot be ended either is a failure of ours', async () => {
    const problem = new HotcellError('DRIVER_UNAVAILABLE', 'the engine does not answer');
    const { exec, read } = makeExec({ giveUp: () => Promise.reject(problem) });
    await exec.kill('wallTimeMs');
    await vi.advanceTimersByTimeAsync(KILL_MS);
    await expect(read()).rejects.toBe(problem);
    expect(await isEnded(exec)).toBe(true);
  });
});

describe('a connection that was lost', () => {
  const texts = (events: readonly ExecEvent[]): string =>
    events.map((event) => (event.type === 'exit' ? '' : Buffer.from(event.bytes).toString())).join('');

  test('[RS-22] what was not paid for is asked for again, and what had come is not told twice', async () => {
    const { exec, sent, read } = makeExec({ fromByte: 100 });
    exec.output('stdout', Buffer.from('abc'));
    exec.output('stderr', Buffer.from('def'));
    const first = await read();
    exec.askAgain();
    expect(sent).toEqual(['Z 100']);
    // The agent begins where it was told to, whatever the pieces are.
    exec.output('stdout', Buffer.from('ab'));
    exec.output('stdout', Buffer.from('c'));
    exec.output('stderr', Buffer.from('defg'));
    expect(texts([first, await read(), await read()])).toBe('abcdefg');
  });

  test('[RS-22] what was paid for is not asked for', async () => {
    const { exec, sent, grants, read } = makeExec();
    exec.output('stdout', Buffer.alloc(64 * KiB));
    exec.output('stdout', Buffer.from('x'));
    await read();
    await read();
    expect(grants).toEqual([64 * KiB]);
    exec.askAgain();
    expect(sent.at(-1)).toBe(`Z ${64 * KiB}`);
  });

  test('[RS-22] nothing counts as paid that could not be sent', async () => {
    const sent: string[] = [];
    const { exec, read } = makeExec({
      send: (type, payload) => {
        sent.push(`${type} ${Buffer.from(payload ?? []).toString()}`);
        return type !== 'C';
      },
    });
    exec.output('stdout', Buffer.alloc(64 * KiB));
    exec.output('stdout', Buffer.from('x'));
    await read();
    await read();
    exec.askAgain();
    expect(sent.at(-1)).toBe('Z 0');
  });

  test('[RS-12, RS-22] a kill that may have been lost is repeated', async () => {
    const { exec, sent } = makeExec();
    await exec.kill('cancelled');
    exec.askAgain();
    expect(sent).toEqual(['K', 'Z 0', 'K']);
    exec.exited(figuresOf({ wait: 9 }));
  });
});
