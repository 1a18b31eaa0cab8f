import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { SilenceWatch } from './silence-watch.ts';

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
}

describe('a source', () => {
  test('that goes on may take longer than the silence', async () => {
    using watch = new SilenceWatch(200);
    async function* slow(): AsyncGenerator<number> {
      for (let count = 0; count < 6; count++) {
        await sleep(50);
        yield count;
      }
    }
    expect(await collect(watch.listen(slow()))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(watch.signal.aborted).toBe(false);
  });

  test('that hangs is left', async () => {
    using watch = new SilenceWatch(50);
    async function* hanging(): AsyncGenerator<number> {
      yield 1;
      await new Promise(() => {});
    }
    await expect(collect(watch.listen(hanging()))).rejects.toThrow('nothing came for 0.05 s');
    expect(watch.signal.aborted).toBe(true);
  });

  test('that fails passes its error on', async () => {
    using watch = new SilenceWatch(10_000);
    async function* failing(): AsyncGenerator<number> {
      yield 1;
      throw new Error('broken');
    }
    await expect(collect(watch.listen(failing()))).rejects.toThrow('broken');
  });
});

test('one promise is left too, and nothing is left of the timer', async () => {
  using watch = new SilenceWatch(20);
  await expect(watch.orSilence(new Promise(() => {}))).rejects.toThrow('nothing came');
  await expect(watch.orSilence(new Promise(() => {}))).rejects.toThrow('nothing came');
});
