import { describe, expect, test } from 'vitest';
import type { EngineMessage } from './engine-messages.ts';
import { PullProgress } from './pull-progress.ts';

const layer = (id: string, status: string, current?: number, total?: number): EngineMessage => ({
  id,
  status,
  progressDetail: { current, total },
});

/** What is shown after each message. */
function follow(messages: readonly EngineMessage[]): string[] {
  const progress = new PullProgress();
  return messages.map((message) => {
    progress.accept(message);
    return progress.text;
  });
}

describe('one figure for all layers', () => {
  test('from the first word to the last, as Docker 20.10 says it', () => {
    expect(
      follow([
        { id: '3.12-slim', status: 'Pulling from library/python' },
        layer('a', 'Pulling fs layer'),
        layer('b', 'Pulling fs layer'),
        layer('c', 'Already exists'),
        layer('b', 'Waiting'),
        layer('a', 'Downloading', 1_000_000, 8_000_000),
        layer('b', 'Downloading', 500_000, 2_000_000),
        layer('b', 'Verifying Checksum'),
        layer('b', 'Download complete'),
        layer('a', 'Downloading', 7_900_000, 8_000_000),
        layer('a', 'Download complete'),
        layer('a', 'Extracting', 4_000_000, 8_000_000),
        layer('a', 'Pull complete'),
        layer('b', 'Pull complete'),
        { status: 'Digest: sha256:0' },
        { status: 'Status: Downloaded newer image for python:3.12-slim' },
      ]),
    ).toEqual([
      'asking the registry',
      'asking the registry',
      'asking the registry',
      'asking the registry',
      'asking the registry',
      '12% (1.0 MB of 8.0 MB)',
      '15% (1.5 MB of 10.0 MB)',
      '30% (3.0 MB of 10.0 MB)',
      '30% (3.0 MB of 10.0 MB)',
      '99% (9.9 MB of 10.0 MB)',
      'unpacking, 1 of 3 layers done (10.0 MB)',
      'unpacking, 1 of 3 layers done (10.0 MB)',
      'unpacking, 2 of 3 layers done (10.0 MB)',
      'unpacking, 3 of 3 layers done (10.0 MB)',
      'unpacking, 3 of 3 layers done (10.0 MB)',
      'unpacking, 3 of 3 layers done (10.0 MB)',
    ]);
  });

  test('the percentage never goes back when a large layer begins late', () => {
    const [, first, second] = follow([
      layer('b', 'Pulling fs layer'),
      layer('a', 'Downloading', 900_000, 1_000_000),
      layer('b', 'Downloading', 0, 99_000_000),
    ]);
    expect(first).toBe('90% (900 kB of 1.0 MB)');
    expect(second).toBe('90% (900 kB of 100 MB)');
  });

  test('a layer of unknown size counts with what has come', () => {
    expect(follow([layer('a', 'Downloading', 500, -1), layer('b', 'Waiting')])[0]).toBe(
      '99% (500 B of 500 B)',
    );
  });

  test('a layer that is tried again is told', () => {
    const [, text] = follow([layer('a', 'Downloading', 1, 100), layer('a', 'Retrying in 5 seconds')]);
    expect(text).toBe('1% (1 B of 100 B), trying a layer again');
  });
});
