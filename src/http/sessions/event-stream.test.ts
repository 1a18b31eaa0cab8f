import { expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import type { OutputEvent } from '../../sessions/api.ts';
import { DATA_FRAMES, NAMED_FRAMES, type EventFrames } from './event-frames.ts';
import { EventParser, type ReceivedEvent } from './event-reader.double.ts';
import { toEventStream } from './event-stream.ts';
import { OutputPieces } from './output-pieces.ts';
import { ScriptedExec } from './scripted-exec.double.ts';

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const FORMS: [string, EventFrames][] = [
  ['named', NAMED_FRAMES],
  ['data', DATA_FRAMES],
];

interface Seen {
  readonly stream: string;
  readonly bytes: Buffer;
}

/** What a client makes of an event of either form; undefined for what is no output. */
function toOutput({ type, data }: ReceivedEvent): Seen | undefined {
  if (type === 'stdout' || type === 'stderr') return { stream: type, bytes: Buffer.from(data) };
  if (type.endsWith('_base64')) return { stream: type.slice(0, 6), bytes: Buffer.from(data, 'base64') };
  if (type !== 'message') return undefined;
  const message = JSON.parse(data) as { type: string; data: string; base64?: string };
  if (message.type !== 'stdout' && message.type !== 'stderr') return undefined;
  const { base64 } = message;
  return {
    stream: message.type,
    bytes: base64 === undefined ? Buffer.from(message.data) : Buffer.from(base64, 'base64'),
  };
}

async function stream(
  exec: ScriptedExec,
  { frames = NAMED_FRAMES, from = 0, bytesAtOnce = Infinity } = {},
): Promise<EventParser> {
  const parser = new EventParser();
  const options = { from, frames, signal: new AbortController().signal, heartbeatMs: 10_000, log: SILENT };
  for await (const text of toEventStream(exec, options)) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += bytesAtOnce) parser.push(bytes.subarray(at, at + bytesAtOnce));
  }
  return parser;
}

function bytesOf(events: readonly ReceivedEvent[], name: string): Buffer {
  const seen = events.map(toOutput).filter((output) => output?.stream === name);
  return Buffer.concat(seen.map((output) => output?.bytes ?? Buffer.alloc(0)));
}

/** Chosen by a seed, so that a failure can be repeated. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const NASTY = [
  '\n',
  '\n\n',
  '\r',
  '\r\n',
  '\0',
  '\u{feff}',
  '\n\nevent: exit\ndata: {"exit_code":0}\n\n',
  'data: ',
  'data:',
  'id: 99\n',
  'retry: 1\n',
  ': comment\n',
  ' leading',
  'é',
  '€',
  '👩‍💻',
  '\u2028',
  '"\\',
  'plain text',
].map((text) => Buffer.from(text));
const BROKEN = [[0xff], [0xc3], [0xe2, 0x82], [0xf0, 0x9f, 0x91], [0x80], [0xed, 0xa0, 0x80]].map((bytes) =>
  Buffer.from(bytes),
);

test.each(FORMS)('[RS-06] random bytes come back exactly, form %s', async (_name, frames) => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const random = makeRandom(seed);
    const pool = [...NASTY, ...BROKEN, Buffer.from([random(256)])];
    const written: Record<string, Buffer[]> = { stdout: [], stderr: [] };
    const exec = new ScriptedExec('exec_1');
    for (let count = 0; count < 60; count += 1) {
      const piece = pool[random(pool.length)] ?? Buffer.alloc(0);
      const bytes = Buffer.concat([piece, pool[random(pool.length)] ?? piece]).subarray(random(2));
      const name = random(3) === 0 ? 'stderr' : 'stdout';
      written[name]?.push(bytes);
      exec.print(name, bytes);
    }
    exec.end();
    const { events } = await stream(exec, { frames, bytesAtOnce: 1 + random(40) });
    for (const [name, pieces] of Object.entries(written)) {
      expect(bytesOf(events, name).toString('hex')).toBe(Buffer.concat(pieces).toString('hex'));
    }
    const last = events.at(-1);
    expect([seed, events.filter(({ type }) => type === 'exit').length, last?.lastEventId]).toEqual([
      seed,
      frames === NAMED_FRAMES ? 1 : 0,
      String(exec.outputBytes),
    ]);
  }
});

test.each(FORMS)(
  '[RS-05] a client that goes on after any event has everything, form %s',
  async (_name, frames) => {
    const exec = new ScriptedExec('exec_1');
    const euro = Buffer.from('€');
    exec.print('stdout', 'one\n');
    exec.print('stdout', euro.subarray(0, 1));
    exec.print('stderr', 'between');
    exec.print('stdout', euro.subarray(1));
    exec.print('stdout', Buffer.from([0x61, 0xf0, 0x9f]));
    exec.print('stdout', Buffer.from([0x91, 0xa9, 0x62]));
    exec.cut(100);
    exec.print('stderr', 'last\r\n');
    exec.end();
    const whole = await stream(exec, { frames });
    for (const [index, { lastEventId }] of whole.events.entries()) {
      const rest = await stream(exec, { frames, from: Number(lastEventId) });
      const both = [...whole.events.slice(0, index + 1), ...rest.events];
      for (const name of ['stdout', 'stderr']) {
        expect(bytesOf(both, name)).toEqual(bytesOf(whole.events, name));
      }
    }
    expect(bytesOf(whole.events, 'stdout')).toEqual(
      Buffer.concat([Buffer.from('one\n'), euro, Buffer.from('a👩b')]),
    );
  },
);

test('[RS-06] a character that comes in two chunks is one text', async () => {
  const exec = new ScriptedExec('exec_1');
  const emoji = Buffer.from('a👩b');
  for (const byte of emoji) exec.print('stdout', Buffer.from([byte]));
  exec.end();
  const { events } = await stream(exec);
  expect(events.map(({ type, data, lastEventId }) => [type, data, lastEventId]).slice(1, -1)).toEqual([
    ['stdout', 'a', '1'],
    ['stdout', '👩', '5'],
    ['stdout', 'b', '6'],
  ]);
});

test('[RS-06] bytes with a gap between them are not taken for one character', () => {
  const pieces = new OutputPieces();
  const half = { type: 'stdout', from: 0, bytes: Buffer.from([0xc3]) } as const;
  const seen = [...pieces.add(half), ...pieces.add({ ...half, from: 10, bytes: Buffer.from([0xa4]) })];
  expect(seen.map(({ text, next }) => [text, next])).toEqual([
    [undefined, 1],
    [undefined, 11],
  ]);
});

test.each([
  ['CR', 'a\rb'],
  ['CRLF', 'a\r\nb'],
  ['NUL', 'a\0b'],
  ['invalid UTF-8', Buffer.from([0x61, 0xff, 0x62])],
  ['half a character at the end', Buffer.from([0x61, 0xe2, 0x82])],
])('[RS-06] %s goes as base64 where the named form cannot carry it', async (_name, output) => {
  const exec = new ScriptedExec('exec_1');
  exec.print('stderr', output);
  exec.end();
  const { events } = await stream(exec);
  expect(events.map(({ type }) => type)).toContain('stderr_base64');
  expect(bytesOf(events, 'stderr')).toEqual(Buffer.from(output));
});

test('[RS-06] in the data form, text that is exact has no base64, and other bytes have both', async () => {
  const exec = new ScriptedExec('exec_1');
  exec.print('stdout', 'a\r\n\0\u{feff}');
  exec.print('stderr', Buffer.from([0x61, 0xff]));
  exec.end();
  const { events } = await stream(exec, { frames: DATA_FRAMES });
  expect(events.slice(0, 2).map(({ data }) => JSON.parse(data) as unknown)).toEqual([
    { type: 'stdout', data: 'a\r\n\0\u{feff}' },
    { type: 'stderr', data: 'a\ufffd', base64: 'Yf8=' },
  ]);
});

test('[RS-06] a chunk of any size becomes events of bounded size', async () => {
  const exec = new ScriptedExec('exec_1');
  const text = '€'.repeat(100_000);
  exec.print('stdout', text);
  exec.end();
  const { events } = await stream(exec);
  const parts = events.filter(({ type }) => type === 'stdout');
  expect(parts.map(({ data }) => data).join('')).toBe(text);
  expect(Math.max(...parts.map(({ data }) => Buffer.byteLength(data)))).toBeLessThanOrEqual(64 * 1024 + 3);
});

test('[RS-05] output that fails in the middle is said to have been interrupted', async () => {
  const exec = new ScriptedExec('exec_1');
  exec.failing = { follow: new HotcellError('CELL_LOST', 'the log cannot be read') };
  const { events } = await stream(exec);
  expect(events.at(-1)).toMatchObject({ type: 'interrupted' });
  expect(JSON.parse(events.at(-1)?.data ?? '')).toMatchObject({ code: 'CELL_LOST' });
});

test('[RS-05] silence is filled with comments, and half a character does not wait for ever', async () => {
  const exec = new ScriptedExec('exec_1');
  exec.print('stdout', Buffer.from([0xe2, 0x82]));
  const parser = new EventParser();
  const { signal } = new AbortController();
  const options = { from: 0, frames: NAMED_FRAMES, signal, heartbeatMs: 5, log: SILENT };
  for await (const text of toEventStream(exec, options)) {
    parser.push(Buffer.from(text));
    if (parser.comments.length === 3) exec.end();
  }
  expect(parser.comments.length).toBeGreaterThanOrEqual(3);
  expect(parser.events.map(({ type }) => type)).toEqual(['start', 'stdout_base64', 'exit']);
});

test('[RS-05] whoever stops reading stops the source', async () => {
  const exec = new ScriptedExec('exec_1');
  let produced = 0;
  exec.follow = async function* follow(): AsyncGenerator<OutputEvent> {
    for (;;) {
      produced += 1;
      yield await Promise.resolve({ type: 'stdout' as const, from: 0, bytes: Buffer.from('x') });
    }
  };
  const { signal } = new AbortController();
  const options = { from: 0, frames: NAMED_FRAMES, signal, heartbeatMs: 1000, log: SILENT };
  for await (const text of toEventStream(exec, options)) if (text.includes('stdout')) break;
  expect(produced).toBe(1);
});
