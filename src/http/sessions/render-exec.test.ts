import { expect, test } from 'vitest';
import { toOutputReply } from './render-exec.ts';

test('[RS-06] bytes that are no text come as base64 beside what a reader can see of them', () => {
  const chunks = [
    { stream: 'stdout', from: 1, bytes: Buffer.from('€') },
    { stream: 'stderr', from: 4, bytes: Buffer.from([0xff]) },
  ] as const;
  expect(toOutputReply({ from: 1, next: 5, chunks, cut: [], result: undefined })).toEqual({
    from: 1,
    next: 5,
    chunks: [
      { stream: 'stdout', from: 1, data: '€' },
      { stream: 'stderr', from: 4, data: '\ufffd', base64: '/w==' },
    ],
    cut: [],
    result: null,
  });
});
