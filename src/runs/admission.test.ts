import { getEventListeners } from 'node:events';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { Admission } from './admission.ts';

const NOBODY = new AbortController().signal;

/** Runs that stay inside until the test lets them go. */
function makeRuns(limits: { running: number; queue: number }) {
  const admission = new Admission(limits);
  const started: string[] = [];
  const finish = new Map<string, (error?: Error) => void>();
  const enter = (name: string, signal: AbortSignal = NOBODY): Promise<string> =>
    admission.run(() => {
      started.push(name);
      return new Promise((resolve, reject) => {
        finish.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    }, signal);
  /** Ends a run and lets everybody else see it. */
  const leave = async (name: string, error?: Error): Promise<void> => {
    await nextTurn();
    finish.get(name)?.(error);
    await nextTurn();
  };
  return { admission, started, enter, leave };
}

const countsOf = ({ inside, waiting }: Admission) => ({ inside, waiting });

test('no more runs are inside than granted; the others wait in order', async () => {
  const { admission, started, enter, leave } = makeRuns({ running: 2, queue: 2 });
  const runs = ['a', 'b', 'c', 'd'].map((name) => enter(name));
  expect(countsOf(admission)).toEqual({ inside: 2, waiting: 2 });
  await leave('b');
  expect(started).toEqual(['a', 'b', 'c']);
  for (const name of ['a', 'c', 'd']) await leave(name);
  expect(await Promise.all(runs)).toEqual(['a', 'b', 'c', 'd']);
  expect(started).toEqual(['a', 'b', 'c', 'd']);
  expect(countsOf(admission)).toEqual({ inside: 0, waiting: 0 });
});

test('[CX-07] one more than fits is sent away with the time after which to come again', async () => {
  const { enter } = makeRuns({ running: 1, queue: 1 });
  void enter('a');
  void enter('b');
  const refusal = await enter('c').catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: 'TOO_BUSY', status: 429 });
  expect((refusal as HotcellError).retryAfterSeconds).toBeGreaterThanOrEqual(1);
  expect(Number.isInteger((refusal as HotcellError).retryAfterSeconds)).toBe(true);
});

test('without a queue nobody waits, and the retry time is still a second', async () => {
  const { enter } = makeRuns({ running: 1, queue: 0 });
  void enter('a');
  await expect(enter('b')).rejects.toMatchObject({ code: 'TOO_BUSY', retryAfterSeconds: 1 });
});

test('a place in the queue is free again when its run starts', async () => {
  const { admission, enter, leave } = makeRuns({ running: 1, queue: 1 });
  void enter('a');
  void enter('b');
  await leave('a');
  void enter('c');
  expect(countsOf(admission)).toEqual({ inside: 1, waiting: 1 });
});

test('[CX-18] who gives up while waiting frees the place and is never run', async () => {
  const { admission, started, enter, leave } = makeRuns({ running: 1, queue: 1 });
  void enter('a');
  const caller = new AbortController();
  const waiting = enter('b', caller.signal);
  caller.abort(new HotcellError('SHUTTING_DOWN', 'the server is stopping'));
  await expect(waiting).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
  void enter('c');
  await leave('a');
  expect(started).toEqual(['a', 'c']);
  await leave('c');
  expect(countsOf(admission)).toEqual({ inside: 0, waiting: 0 });
});

test('a run that fails lets the next one in', async () => {
  const { started, enter, leave } = makeRuns({ running: 1, queue: 1 });
  const [failed] = [Promise.allSettled([enter('a')]), enter('b')];
  await leave('a', new Error('boom'));
  expect(await failed).toMatchObject([{ status: 'rejected', reason: { message: 'boom' } }]);
  expect(started).toEqual(['a', 'b']);
});

test('a signal is let go when its run is inside', async () => {
  const { enter, leave } = makeRuns({ running: 1, queue: 1 });
  const { signal } = new AbortController();
  void enter('a');
  void enter('b', signal);
  await leave('a');
  await leave('b');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
