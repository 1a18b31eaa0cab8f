import { afterEach, describe, expect, test, vi } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import type { ExecEvent } from '../../core/exec.ts';
import type { AgentExec } from './agent-exec.ts';
import { AgentLink, LONGEST_PAYLOAD, type AgentLinkParts } from './agent-link.ts';
import { FrameReader, encodeFrame } from '../../lib/frames.ts';

const ANSWER_MS = 5000;
const NO_USAGE = { cpuMs: 0, peakMemoryBytes: undefined, reached: [] };
const REQUEST = { argv: ['sh', '-c', 'echo'], env: {}, cwd: '/tmp' } as const;

/** A connection at whose other end the test is. */
function makeLink(changes: Partial<AgentLinkParts> = {}) {
  const reader = new FrameReader(LONGEST_PAYLOAD);
  const sent: string[] = [];
  let surrenders = 0;
  const link = new AgentLink({
    cellName: 'cell',
    write: (bytes) => {
      for (const { type, id, payload } of reader.push(bytes))
        sent.push(`${type} ${id} ${Buffer.from(payload).toString().replaceAll('\0', '|')}`.trim());
    },
    giveUp: () => {
      surrenders++;
      return Promise.resolve();
    },
    ...changes,
  });
  const start = (request: Partial<Parameters<AgentLink['start']>[0]> = {}): AgentExec =>
    link.start({ ...REQUEST, ...request }, { alone: false });
  const say = (type: string, id: number, text = ''): void =>
    link.receive(encodeFrame(type, id, Buffer.from(text)));
  return { link, sent, start, say, surrenders: () => surrenders };
}

async function collect(exec: AgentExec): Promise<string[]> {
  const toLine = (event: ExecEvent): string =>
    event.type === 'exit'
      ? `exit ${JSON.stringify(event.outcome)}`
      : `${event.type} ${Buffer.from(event.bytes).toString()}`;
  const lines: string[] = [];
  for await (const event of exec.events) lines.push(toLine(event));
  return lines;
}

const errorOf = (exec: AgentExec): Promise<unknown> => collect(exec).catch((error: unknown) => error);

afterEach(() => void vi.useRealTimers());

test('[FL-13] a line for the log of a cell is one frame that a pipe takes as a whole', () => {
  const { link, sent } = makeLink();
  link.writeLog('ready');
  link.writeLog('€'.repeat(5000));
  expect(sent[0]).toBe('G 0 ready');
  expect(Buffer.byteLength(sent[1] ?? '')).toBeLessThanOrEqual(4096);
  expect(sent[1]).toMatch(/^G 0 €+…$/);
});

describe('a deadline', () => {
  test('[RS-22] is told right after the start and when it changes, and whoever is late has reached the limit of time', async () => {
    const { sent, start, say } = makeLink();
    const exec = start({ deadline: { afterMs: 1500.4, graceMs: 200 } });
    exec.endAfter({ afterMs: 3000, graceMs: 0 });
    exec.endAfter(undefined);
    expect(sent.slice(1)).toEqual(['A 1 1500 200', 'A 1 3000 0', 'A 1']);
    say('X', 1, 'wait=15 expired=1');
    expect(await collect(exec)).toEqual(['exit {"kind":"limit","limit":"wallTimeMs"}']);
  });

  test('[RS-22] of the cell is told, and taken back', () => {
    const { link, sent } = makeLink();
    vi.useFakeTimers();
    link.endAfter({ afterMs: 5000, graceMs: 100 });
    link.endAfter(undefined);
    expect(sent).toEqual(['A 0 5000 100', 'A 0']);
  });
});

describe('a start', () => {
  test('says whether the command is alone, where, on which file, with which words and variables', () => {
    const { link, sent } = makeLink();
    link.start(
      { argv: ['a', '', 'b c'], env: { A: 'x=y', B: '' }, cwd: '/w', touch: '/w/f' },
      { alone: true },
    );
    link.start(REQUEST, { alone: false });
    expect(sent).toEqual(['S 1 1|/w|/w/f|||3|a||b c|A=x=y|B=', 'S 2 0|/tmp||||3|sh|-c|echo']);
  });

  test('[RS-03, TM-01] says the size of a terminal and where to fall back to', () => {
    const { sent, start } = makeLink();
    start({ argv: ['a'], terminal: { rows: 24, columns: 80 }, fallbackCwd: '/w' });
    expect(sent).toEqual(['S 1 0|/tmp||24 80|/w|1|a']);
  });

  test('keeps every byte of a word', () => {
    const { sent, start } = makeLink();
    start({ argv: ['é\n\u{1f600}'] });
    expect(sent).toEqual(['S 1 0|/tmp||||1|é\n\u{1f600}']);
  });

  test.each([
    ['an argument', { argv: ['sh', 'a\0LD_PRELOAD=x'] as [string, string] }],
    ['the value of a variable', { env: { A: 'b\0C=d' } }],
    ['the name of a variable', { env: { 'A\0B': '' } }],
    ['the folder', { cwd: '/tmp\0' }],
    ['the file', { touch: '/tmp/x\0' }],
    ['the folder to fall back to', { fallbackCwd: '/tmp\0' }],
  ])('[SC-03] with NUL in %s is refused, and nothing is sent or kept', (_where, request) => {
    const { sent, start } = makeLink();
    expect(() => start(request)).toThrow('NUL');
    expect(sent).toEqual([]);
    start();
    expect(sent).toEqual(['S 1 0|/tmp||||3|sh|-c|echo']);
  });

  test('[CX-16] on a connection that is gone is an error', () => {
    const { link, start } = makeLink();
    const error = new HotcellError('CELL_LOST', 'gone');
    link.close(error);
    expect(() => start()).toThrow(error);
  });
});

describe('two commands', () => {
  test('[CX-12] do not mix', async () => {
    const { sent, start, say } = makeLink();
    const [one, other] = [start(), start()];
    one.write(Buffer.from('for one'));
    other.closeStdin();
    expect(sent.slice(2)).toEqual(['I 1 for one', 'E 2']);
    say('O', 2, 'two');
    say('O', 1, 'one');
    say('e', 2, 'err');
    say('X', 2, 'wait=256');
    say('X', 1, 'wait=0');
    expect(await collect(one)).toEqual(['stdout one', 'exit {"kind":"exited","code":0}']);
    expect(await collect(other)).toEqual(['stdout two', 'stderr err', 'exit {"kind":"exited","code":1}']);
  });

  test('[CX-16] the loss of one is not that of the other', async () => {
    const { start, say } = makeLink();
    const [one, other] = [start(), start()];
    say('L', 1);
    say('X', 2, 'wait=0');
    expect(await errorOf(one)).toMatchObject({ code: 'CELL_LOST' });
    expect(await collect(other)).toEqual(['exit {"kind":"exited","code":0}']);
  });
});

describe('ready', () => {
  test('resolves with the first word of the agent', async () => {
    const { link, say } = makeLink();
    say('R', 0);
    await expect(link.untilReady()).resolves.toBe('');
  });

  test('[CX-08] rejects when there never will be one', async () => {
    const { link } = makeLink();
    link.close(new HotcellError('CELL_START_FAILED', 'no perl'));
    await expect(link.untilReady()).rejects.toThrow('no perl');
  });
});

describe('questions', () => {
  test('[CX-10] get the answer for their command', async () => {
    const { sent, start, say } = makeLink();
    const [one, other] = [start(), start()];
    const answers = Promise.all([one.usage(), other.usage()]);
    expect(sent.slice(2)).toEqual(['U 1', 'U 2']);
    say('U', 2, 'cpu_us=2000');
    say('U', 1, 'cpu_us=1000');
    expect(await answers).toMatchObject([{ cpuMs: 1 }, { cpuMs: 2 }]);
  });

  test('[CX-10] that the end overtakes get the last figures', async () => {
    const { start, say } = makeLink();
    const exec = start();
    const usage = exec.usage();
    say('X', 1, 'wait=0 cpu_us=3000 rss=4');
    expect(await usage).toMatchObject({ cpuMs: 3, peakMemoryBytes: 4 });
  });

  test('[CX-10] to an agent that is silent end after a while, and no later answer disturbs', async () => {
    vi.useFakeTimers();
    const { start, say } = makeLink();
    const exec = start();
    const usage = exec.usage();
    await vi.advanceTimersByTimeAsync(ANSWER_MS);
    expect(await usage).toEqual(NO_USAGE);
    say('U', 1, 'cpu_us=1000');
    const again = exec.usage();
    say('U', 1, 'cpu_us=5000');
    expect(await again).toMatchObject({ cpuMs: 5 });
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each(['L', 'F'])('[CX-10] about a command that ends with %s end, too', async (type) => {
    const { sent, start, say } = makeLink();
    const exec = start();
    const usage = exec.usage();
    say(type, 1, 'why');
    expect(await usage).toEqual(NO_USAGE);
    await errorOf(exec);
    // Nobody is asked about who is gone.
    expect(await exec.usage()).toEqual(NO_USAGE);
    expect(sent.filter((frame) => frame.startsWith('U'))).toEqual(['U 1']);
  });

  test('[CX-10] end with the connection', async () => {
    vi.useFakeTimers();
    const { link, start } = makeLink();
    const exec = start();
    const usage = exec.usage();
    link.close(new HotcellError('CELL_LOST', 'over'));
    expect(await usage).toEqual(NO_USAGE);
    expect(vi.getTimerCount()).toBe(0);
    expect(await exec.usage()).toEqual(NO_USAGE);
  });
});

describe('limits that only the host sees', () => {
  test('[CX-09] count when they were reached while the command ran', async () => {
    const counts = { memoryBytes: 3, processes: 5 };
    const { start, say } = makeLink({ countReached: () => ({ ...counts }) });
    const before = start();
    counts.memoryBytes++;
    const after = start();
    say('X', 1, 'wait=9');
    say('X', 2, 'wait=9');
    expect(await collect(before)).toEqual(['exit {"kind":"limit","limit":"memoryBytes"}']);
    expect(await collect(after)).toEqual(['exit {"kind":"signalled","signal":9}']);
  });
});

describe('the end of the connection', () => {
  test('[CX-16] is a loss for all who run, and a wish come true for who was to be killed', async () => {
    const { link, start, sent } = makeLink();
    const [one, other] = [start(), start()];
    await other.kill('wallTimeMs');
    const error = new HotcellError('CELL_LOST', 'ended from outside');
    link.close(error);
    link.close(new HotcellError('CELL_LOST', 'again'));
    expect(await errorOf(one)).toBe(error);
    expect(await collect(other)).toEqual(['exit {"kind":"limit","limit":"wallTimeMs"}']);
    one.write(Buffer.from('x'));
    expect(sent).toHaveLength(3);
  });

  test('what still comes is not read', async () => {
    const { link, start, say } = makeLink();
    const exec = start();
    link.close(new HotcellError('CELL_LOST', 'over'));
    say('O', 1, 'late');
    await expect(collect(exec)).rejects.toThrow('over');
  });
});

describe('nonsense from the agent', () => {
  const absurd = Buffer.from('O\0\0\0\x01\xff\xff\xff\xff', 'latin1');

  test.each([
    ['a frame of a type that there is not', encodeFrame('Z', 1)],
    ['a frame of our own types', encodeFrame('K', 1)],
    ['an absurd length', absurd],
  ])('[SC-03] %s ends the connection and the cell', async (_what, bytes) => {
    const { link, start, surrenders } = makeLink();
    const exec = start();
    link.receive(bytes);
    expect(await errorOf(exec)).toMatchObject({
      code: 'CELL_LOST',
      message: expect.stringContaining('nonsense') as string,
    });
    expect(surrenders()).toBe(1);
    expect(() => start()).toThrow('nonsense');
    link.receive(bytes);
    expect(surrenders()).toBe(1);
  });

  test('[SC-03] a cell that cannot be ended does not end the server', async () => {
    const { link, start } = makeLink({ giveUp: () => Promise.reject(new Error('busy')) });
    const exec = start();
    link.receive(absurd);
    expect(await errorOf(exec)).toMatchObject({ code: 'CELL_LOST' });
  });

  test('[SC-03] frames about commands that there are not change nothing', async () => {
    const { start, say, surrenders } = makeLink();
    const exec = start();
    for (const id of [0, 2, 0xffffffff]) for (const type of ['O', 'X', 'L', 'U']) say(type, id, 'wait=0');
    say('X', 1, 'wait=512');
    say('O', 1, 'after the end');
    expect(await collect(exec)).toEqual(['exit {"kind":"exited","code":2}']);
    expect(surrenders()).toBe(0);
  });
});
