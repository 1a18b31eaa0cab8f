import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { HotcellError } from '../../core/errors.ts';
import { DockerCell } from './cell.ts';

test('[RS-22, SC-02] a lasting cell whose engine was back before anybody noticed is asked for again', async () => {
  const stream = new PassThrough();
  const answers = [
    new HotcellError('DRIVER_UNAVAILABLE', 'the engine starts just now'),
    new HotcellError('CELL_LOST', 'its container has ended'),
  ];
  const cell = new DockerCell({
    id: '0123456789abcdef',
    name: 'session-shell-1234',
    spec: {
      name: 'session-shell-1234',
      labels: {},
      image: undefined,
      limits: DEFAULT_LIMITS,
      main: undefined,
    } as never,
    isolation: {} as never,
    stream,
    limitMemory: undefined,
    wasOutOfMemory: undefined,
    lasting: {
      marker: Buffer.alloc(16),
      adopted: false,
      record: '',
      attachAgain: () => Promise.reject(answers.shift() ?? new Error('asked too often')),
    },
    freeze: () => Promise.resolve(),
    thaw: () => Promise.resolve(),
    usage: () => Promise.resolve({ cpuMs: 0, memoryBytes: undefined, processes: undefined }),
    onGuestMissing: () => {},
    remove: () => Promise.resolve(),
  });
  stream.destroy();
  await cell.gone;
  expect(answers).toEqual([]);
});
