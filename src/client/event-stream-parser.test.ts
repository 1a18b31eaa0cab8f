import { expect, test } from 'vitest';
import { EventStreamParser, type ServerSentEvent } from './event-stream-parser.ts';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const LONGEST = 10_000;

function parse(text: string | Uint8Array, sizes: () => number = () => Infinity) {
  const parser = new EventStreamParser(LONGEST);
  const bytes = typeof text === 'string' ? encode(text) : text;
  const events: ServerSentEvent[] = [];
  for (let at = 0; at < bytes.length;) {
    const size = sizes();
    events.push(...parser.push(bytes.subarray(at, at + size)));
    at += size;
  }
  return { events, lastEventId: parser.lastEventId, retryMs: parser.retryMs };
}

const message = (data: string, lastEventId = '', type = 'message') => ({ type, data, lastEventId });

test.each<[string, string, object[]]>([
  ['a line', 'data: hello\n\n', [message('hello')]],
  ['no space', 'data:hello\n\n', [message('hello')]],
  ['two spaces', 'data:  hello\n\n', [message(' hello')]],
  ['several lines', 'data: a\ndata:\ndata: b\n\n', [message('a\n\nb')]],
  ['an empty line', 'data\n\n', [message('')]],
  ['two empty lines', 'data\ndata\n\n', [message('\n')]],
  ['CRLF', 'event: x\r\ndata: a\r\n\r\n', [message('a', '', 'x')]],
  ['CR', 'event: x\rdata: a\r\rdata: b\r\r', [message('a', '', 'x'), message('b')]],
  ['mixed ends', 'data: a\r\ndata: b\rdata: c\n\r\n', [message('a\nb\nc')]],
  ['a BOM', '\ufeffdata: a\n\n', [message('a')]],
  ['only the first BOM', '\ufeff\ufeffdata: a\n\ndata: \ufeff\n\n', [message('\ufeff')]],
  ['comments', ': one\ndata: a\n:two\n\n', [message('a')]],
  ['no data', 'event: x\nid: 1\n\ndata: a\n\n', [message('a', '1')]],
  [
    'an id stays',
    'id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n',
    [message('a', '1'), message('b', '1'), message('c')],
  ],
  ['an id with NUL', 'id: 1\0\ndata: a\n\n', [message('a')]],
  ['unknown fields', 'foo: 1\nDATA: x\n data: y\ndata: a\n\n', [message('a')]],
  ['no end', 'data: a\n\ndata: b\n', [message('a')]],
  ['a colon in the value', 'data: a: b\n\n', [message('a: b')]],
])('[RS-20] events: %s', (_name, text, expected) => {
  expect(parse(text).events).toEqual(expected);
  expect(parse(text, () => 1).events).toEqual(expected);
});

test('[RS-20] the time until the next attempt is digits and nothing else', () => {
  expect(parse('retry: 1500\nretry: 2s\nretry: -1\n\n').retryMs).toBe(1500);
});

test('[RS-20] an id counts from the end of its block on, also without data', () => {
  expect(parse('id: 1\n\nid: 2\n').lastEventId).toBe('1');
});

test('[RS-20] a line that ends in CR is there at once, and the LF after it is no line', () => {
  const parser = new EventStreamParser(LONGEST);
  expect(parser.push(encode('data: a\r\r'))).toEqual([message('a')]);
  expect(parser.push(encode('\n'))).toEqual([]);
  expect(parser.push(encode('data: b\r'))).toEqual([]);
  expect(parser.push(encode(''))).toEqual([]);
  expect(parser.push(encode('\ndata: c\n\n'))).toEqual([message('b\nc')]);
});

/** Chosen by a seed, so that a failure can be repeated. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

test('[RS-20] the same events come, however the bytes are cut', () => {
  const PIECES = [
    'data',
    'data: ',
    'event: x',
    'id: 7',
    'retry: 3',
    ':',
    ' ',
    '\r',
    '\n',
    '\r\n',
    '\0',
    '€',
    '👩‍💻',
    '\ufeff',
    'a',
  ];
  for (let seed = 1; seed <= 400; seed += 1) {
    const random = makeRandom(seed);
    const text = Array.from({ length: 60 }, () => PIECES[random(PIECES.length)] ?? '').join('');
    // Bytes that are no text, too.
    const bytes = Uint8Array.from([...encode(text), random(256), ...encode(text), 10, 10]);
    expect([seed, parse(bytes, () => 1 + random(5))]).toEqual([seed, parse(bytes)]);
  }
});

test('[RS-20] an event without an end is refused, also one of many lines', () => {
  const parser = new EventStreamParser(100);
  expect(() => {
    for (let count = 0; count < 12; count += 1) parser.push(encode('x'.repeat(10)));
  }).toThrow(RangeError);
  const other = new EventStreamParser(100);
  expect(() => {
    for (let count = 0; count < 12; count += 1) other.push(encode('data: 34567890\n'));
  }).toThrow(RangeError);
});
