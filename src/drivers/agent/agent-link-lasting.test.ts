import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { AgentExec } from './agent-exec.ts';
import { AgentLink } from './agent-link.ts';
import { HotcellError } from '../../core/errors.ts';
import { encodeFrame } from '../../lib/frames.ts';

const MARKER = Buffer.from('0123456789abcdef0123456789abcdef');
const GREETING_BYTES = MARKER.length + 8;
const REQUEST = { argv: ['sh'], env: {}, cwd: '/tmp' } as const;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A connection to an agent that lasts, at whose other end the test is. */
function makeLink(adopted: boolean) {
  const sent: Uint8Array[] = [];
  let surrenders = 0;
  const link = new AgentLink({
    cellName: 'cell',
    write: (bytes) => sent.push(Uint8Array.from(bytes)),
    giveUp: () => {
      surrenders++;
      return Promise.resolve();
    },
    lasting: { marker: MARKER, adopted },
  });
  return { link, sent, surrenders: () => surrenders };
}

function adopt(ids = '1 7') {
  const made = makeLink(true);
  const ready = made.link.untilReady();
  const greeting = made.sent[0] ?? Buffer.alloc(0);
  const answer = Buffer.concat([greeting, encodeFrame('H', 0, Buffer.from(ids))]);
  return { ...made, ready, greeting, answer };
}

async function outputOf(exec: AgentExec): Promise<string> {
  let text = '';
  for await (const event of exec.events)
    if (event.type !== 'exit') text += Buffer.from(event.bytes).toString();
  return text;
}

describe('the first server', () => {
  test('[RS-22] tells the marker once the agent is there, and greets nobody', async () => {
    const { link, sent } = makeLink(false);
    const ready = link.untilReady();
    expect(sent).toEqual([]);
    link.receive(encodeFrame('R', 0));
    await ready;
    expect(sent).toEqual([encodeFrame('M', 0, MARKER)]);
  });
});

describe('the next server', () => {
  test('[RS-22] greets again and again with the same bytes until it is answered', async () => {
    const { link, sent, ready, greeting, answer } = adopt();
    await vi.advanceTimersByTimeAsync(600);
    expect(greeting.subarray(0, MARKER.length)).toEqual(Uint8Array.from(MARKER));
    expect(greeting.length).toBe(GREETING_BYTES);
    expect(sent).toEqual([greeting, greeting, greeting]);
    link.receive(answer);
    await ready;
    await vi.advanceTimersByTimeAsync(5000);
    expect(sent).toHaveLength(3);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('[RS-22] has a greeting of its own', () => {
    expect(adopt().greeting).not.toEqual(adopt().greeting);
  });

  test.each([1, 3, 39, 1000])(
    '[RS-22] does not listen to what was for the one before it, in pieces of %i bytes',
    async (size) => {
      const { link, ready, answer, surrenders } = adopt();
      const other = adopt();
      const stale = Buffer.concat([
        encodeFrame('O', 1, Buffer.from('stale')).subarray(4),
        Buffer.from('X\0\0\0\x01\xff\xff\xff\xff', 'latin1'),
        MARKER,
        other.answer,
        encodeFrame('X', 1, Buffer.from('wait=0')),
      ]);
      const bytes = Buffer.concat([stale, answer]);
      for (let at = 0; at < bytes.length; at += size) link.receive(bytes.subarray(at, at + size));
      await ready;
      expect(surrenders()).toBe(0);
      const exec = link.resume(1, 3);
      if (exec === undefined) throw new Error('nothing to resume');
      link.receive(encodeFrame('O', 1, Buffer.from('mine')));
      link.receive(encodeFrame('X', 1, Buffer.from('wait=0')));
      expect(await outputOf(exec)).toBe('mine');
    },
  );

  test('[RS-22] resumes what the agent knows, once, and nothing else', async () => {
    const { link, sent, ready, answer } = adopt();
    link.receive(answer);
    await ready;
    expect(link.resume(7, 123)?.lasting?.number).toBe(7);
    expect(sent.at(-1)).toEqual(encodeFrame('Z', 7, Buffer.from('123')));
    expect([link.resume(7, 0), link.resume(2, 0), link.resume(0, 0)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    // Numbers of its own begin after those that are taken.
    expect(link.start(REQUEST, { alone: false }).lasting?.number).toBe(8);
  });

  test('[RS-22] finds an agent that has nothing to tell', async () => {
    const { link, ready, answer } = adopt('');
    link.receive(answer);
    await ready;
    expect(link.start(REQUEST, { alone: false }).lasting?.number).toBe(1);
  });

  test.each(['x', '-1', '1e99', '0'])(
    '[SC-03] gives up a cell whose agent names a command %s',
    async (ids) => {
      const { link, ready, answer, surrenders } = adopt(ids);
      link.receive(answer);
      await expect(ready).rejects.toMatchObject({ code: 'CELL_LOST' });
      expect(surrenders()).toBe(1);
    },
  );

  test('[RS-22, SC-07] that is never answered gives up, and leaves the cell alone', async () => {
    const { ready, surrenders } = adopt();
    const failed = ready.catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await failed).toMatchObject({ code: 'CELL_START_FAILED' });
    expect([surrenders(), vi.getTimerCount()]).toEqual([0, 0]);
  });
});

test('[RS-03, RS-22] an end says where the shell was and whether it began elsewhere, and can be forgotten', async () => {
  const { link, sent, ready, answer } = adopt();
  link.receive(answer);
  await ready;
  const exec = link.resume(1, 0);
  link.receive(encodeFrame('P', 1, Buffer.from('/workspace/é')));
  link.receive(encodeFrame('X', 1, Buffer.from('wait=256 moved=1')));
  const { value } = (await exec?.events[Symbol.asyncIterator]().next()) ?? {};
  expect(value).toMatchObject({
    outcome: { kind: 'exited', code: 1 },
    cwd: '/workspace/é',
    fellBack: true,
  });
  exec?.lasting?.forget();
  expect(sent.at(-1)).toEqual(encodeFrame('D', 1));
});

describe('a connection that was lost', () => {
  test('[RS-22] commands wait, and go on over the next one', async () => {
    const { link, sent, ready, answer } = adopt('1 7');
    link.receive(answer);
    await ready;
    const exec = link.resume(1, 5);
    link.receive(encodeFrame('O', 1, Buffer.from('abc')));
    const problem = new HotcellError('DRIVER_UNAVAILABLE', 'away');
    link.suspend(problem);
    const before = sent.length;
    exec?.terminate();
    expect(sent).toHaveLength(before);
    expect(() => link.start({ argv: ['true'], env: {}, cwd: '/' }, { alone: false })).toThrow(problem);

    const relinked = link.relink();
    const greeting = sent.at(-1) ?? new Uint8Array();
    expect(greeting).toHaveLength(GREETING_BYTES);
    // The rest of what the old connection carried, then the answer: 9 has ended and was noted long ago.
    link.receive(
      Buffer.concat([Buffer.from('rubbish'), greeting, encodeFrame('H', 0, Buffer.from('1 7 9'))]),
    );
    await relinked;
    expect(sent.slice(-2)).toEqual([encodeFrame('Z', 1, Buffer.from('5')), encodeFrame('D', 9)]);
    link.receive(encodeFrame('O', 1, Buffer.from('abcd')));
    link.receive(encodeFrame('X', 1, Buffer.from('wait=0')));
    let text = '';
    for await (const event of exec?.events ?? [])
      if (event.type !== 'exit') text += Buffer.from(event.bytes).toString();
    expect(text).toBe('abcd');
    expect(link.resume(7, 0)?.lasting?.number).toBe(7);
  });

  test('[RS-22] what was said meanwhile about the end of the cell is told over the next one', async () => {
    const { link, sent, ready, answer } = adopt('');
    link.receive(answer);
    await ready;
    link.suspend(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    link.endAfter({ afterMs: 5000, graceMs: 100 });
    vi.setSystemTime(Date.now() + 2000);
    const relinked = link.relink();
    link.receive(Buffer.concat([sent.at(-1) ?? new Uint8Array(), encodeFrame('H', 0)]));
    await relinked;
    expect(sent.at(-1)).toEqual(encodeFrame('A', 0, Buffer.from('3000 100')));
  });

  test('[RS-22] a command that the agent does not know any more is lost', async () => {
    const { link, sent, ready, answer } = adopt('1');
    link.receive(answer);
    await ready;
    const exec = link.resume(1, 0);
    link.suspend(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
    const relinked = link.relink();
    link.receive(Buffer.concat([sent.at(-1) ?? new Uint8Array(), encodeFrame('H', 0)]));
    await relinked;
    await expect(exec?.events[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'CELL_LOST' });
  });
});
