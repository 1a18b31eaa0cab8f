import { describe, expect, test, vi } from 'vitest';
import { EventQueue } from './event-queue.ts';

async function readAll<T>(queue: EventQueue<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of queue) items.push(item);
  return items;
}

function makeQueue(highWater: number) {
  const queue = new EventQueue<number>(highWater);
  queue.onFull = vi.fn<() => void>();
  queue.onDrained = vi.fn<() => void>();
  return queue;
}

describe('reading', () => {
  test('items come in the order of their pushes, whether the reader waits or comes late', async () => {
    const queue = new EventQueue<number>();
    queue.push(1);
    queue.push(2);
    const reading = readAll(queue);
    await Promise.resolve();
    for (const item of [3, 4, 5]) queue.push(item);
    queue.end();
    expect(await reading).toEqual([1, 2, 3, 4, 5]);
  });

  test('a reader that comes after the end still gets everything', async () => {
    const queue = new EventQueue<number>();
    queue.push(1);
    queue.end();
    expect(await readAll(queue)).toEqual([1]);
    expect(await readAll(queue)).toEqual([]);
  });

  test('a second loop goes on where the first one stopped', async () => {
    const queue = new EventQueue<number>();
    for (const item of [1, 2, 3]) queue.push(item);
    queue.end();
    for await (const item of queue) if (item === 2) break;
    expect(await readAll(queue)).toEqual([3]);
  });

  test('a failure comes after the queued items', async () => {
    const queue = new EventQueue<number>();
    queue.push(1);
    queue.fail(new Error('lost'));
    const reader = queue[Symbol.asyncIterator]();
    expect(await reader.next()).toEqual({ value: 1, done: false });
    await expect(reader.next()).rejects.toThrow('lost');
  });

  test('the end wakes a reader that waits', async () => {
    const queue = new EventQueue<number>();
    const next = queue[Symbol.asyncIterator]().next();
    queue.end();
    await expect(next).resolves.toEqual({ value: undefined, done: true });
  });

  test('a failure wakes a reader that waits', async () => {
    const queue = new EventQueue<number>();
    const next = queue[Symbol.asyncIterator]().next();
    queue.fail(new Error('lost'));
    await expect(next).rejects.toThrow('lost');
  });

  test('what happens after the end is ignored', async () => {
    const queue = new EventQueue<number>();
    queue.end();
    queue.push(1);
    queue.fail(new Error('too late'));
    expect(await readAll(queue)).toEqual([]);
  });
});

describe('back-pressure', () => {
  test('the producer is told once when the queue is full', () => {
    const queue = makeQueue(2);
    queue.push(1);
    expect(queue.onFull).not.toHaveBeenCalled();
    queue.push(2);
    queue.push(3);
    expect(queue.onFull).toHaveBeenCalledTimes(1);
  });

  test('the producer may go on only when the last item was taken, and can be stopped again', async () => {
    const queue = makeQueue(2);
    const reader = queue[Symbol.asyncIterator]();
    for (let round = 1; round <= 2; round++) {
      queue.push(1);
      queue.push(2);
      await reader.next();
      expect(queue.onDrained).toHaveBeenCalledTimes(round - 1);
      await reader.next();
      expect(queue.onDrained).toHaveBeenCalledTimes(round);
      expect(queue.onFull).toHaveBeenCalledTimes(round);
    }
  });

  test('a reader that keeps up never stops the producer', async () => {
    const queue = makeQueue(1);
    const reader = queue[Symbol.asyncIterator]();
    for (let item = 0; item < 5; item++) {
      const next = reader.next();
      queue.push(item);
      expect(await next).toEqual({ value: item, done: false });
    }
    expect(queue.onFull).not.toHaveBeenCalled();
  });
});
