import { expect, test } from 'vitest';
import { SharedWork } from './shared-work.ts';

const never = (): AbortSignal => new AbortController().signal;

test('[MC-11] who wants the same at once gets the same', async () => {
  const work = new SharedWork<number>();
  let begun = 0;
  const { promise, resolve } = Promise.withResolvers<number>();
  const begin = (): Promise<number> => {
    begun++;
    return promise;
  };
  const all = [work.join('a', never(), begin), work.join('a', never(), begin)];
  resolve(1);
  expect(await Promise.all(all)).toEqual([1, 1]);
  expect(begun).toBe(1);
  await work.join('a', never(), begin);
  expect(begun).toBe(2);
});

test('[MC-11] a failure is for all who wait, and not for the next one', async () => {
  const work = new SharedWork<number>();
  const fail = (): Promise<number> => Promise.reject(new Error('no'));
  const all = await Promise.allSettled([work.join('a', never(), fail), work.join('a', never(), fail)]);
  expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await work.join('a', never(), () => Promise.resolve(2))).toBe(2);
});

test('[MC-11] it ends when nobody waits any more, and then begins anew', async () => {
  const work = new SharedWork<number>();
  const signals: AbortSignal[] = [];
  const begin = (signal: AbortSignal): Promise<number> => {
    signals.push(signal);
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('ended'))));
  };
  const [one, other] = [new AbortController(), new AbortController()];
  const waiting = [work.join('a', one.signal, begin), work.join('a', other.signal, begin)];
  const settled = Promise.allSettled(waiting);
  one.abort();
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  other.abort();
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  expect(await work.join('a', never(), () => Promise.resolve(3))).toBe(3);
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await expect(waiting[0]).rejects.toMatchObject({ code: 'CANCELLED' });
});

test('[MC-11] whoever comes too late does not begin', async () => {
  const gone = AbortSignal.abort();
  await expect(new SharedWork<number>().join('a', gone, () => Promise.resolve(1))).rejects.toMatchObject({
    code: 'CANCELLED',
  });
});
