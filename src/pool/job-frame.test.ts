import { expect, test } from 'vitest';
import type { Job } from '../core/job.ts';
import { READY_BYTE, encodeJobFrame } from './job-frame.ts';

const EMPTY: Job = { code: '', args: [], env: {}, files: [] };
const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

function frameOf(changes: Partial<Job>): string {
  return new TextDecoder().decode(encodeJobFrame({ ...EMPTY, ...changes }));
}

test('[CX-12] an empty job is four fields', () => {
  expect(frameOf({})).toBe('0\n1\n01\n01\n0');
});

test('[CX-12] every field of a small job, byte for byte', () => {
  const frame = frameOf({
    code: 'print(1)\n',
    args: ['-x', ''],
    env: { A: 'b=c', B: '' },
    files: [{ path: 'data/x', content: encode('hi') }],
  });
  expect(frame).toBe('9\nprint(1)\n1\n22\n-x0\n1\n25\nA=b=c2\nB=1\n16\ndata/x2\nhi');
});

test.each([
  ['é', 2],
  ['€', 3],
  ['😀', 4],
])('[CX-12] a length counts bytes, not characters: %s', (character, length) => {
  expect(frameOf({ code: character })).toBe(`${length}\n${character}1\n01\n01\n0`);
});

test('[CX-12] the content of a file is carried as it is, also bytes that are no text', () => {
  const content = Uint8Array.from([0, 255, 10, 128]);
  const frame = encodeJobFrame({ ...EMPTY, files: [{ path: 'f', content }] });
  expect([...frame.subarray(-7)]).toEqual([0x66, 0x34, 0x0a, ...content]);
});

test('[CX-12] text that looks like a field cannot pass for one', () => {
  expect(frameOf({ args: ['0\n1\n9'] })).toBe('0\n1\n15\n0\n1\n91\n01\n0');
});

test('the byte of readiness is no character that an interpreter prints by itself', () => {
  expect(READY_BYTE).toBe(6);
});
