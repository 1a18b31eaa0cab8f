import { expect, test } from 'vitest';
import { Semaphore } from './semaphore.ts';

/** A task for each name, which runs until the test lets it go. */
function makeTasks(semaphore: Semaphore) {
  const started: string[] = [];
  const finish = new Map<string, (error?: Error) => void>();
  const start = (name: string): Promise<string> =>
    semaphore.run(() => {
      started.push(name);
      return new Promise((resolve, reject) => {
        finish.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    });
  return { started, start, finish: (name: string, error?: Error) => finish.get(name)?.(error) };
}

test('never more holders than permits, and the others come in order', async () => {
  const tasks = makeTasks(new Semaphore(2));
  const runs = ['a', 'b', 'c', 'd'].map((name) => tasks.start(name));
  expect(tasks.started).toEqual(['a', 'b']);
  tasks.finish('b');
  await runs[1];
  await Promise.resolve();
  expect(tasks.started).toEqual(['a', 'b', 'c']);
  tasks.finish('a');
  await runs[0];
  await Promise.resolve();
  expect(tasks.started).toEqual(['a', 'b', 'c', 'd']);
  for (const name of ['c', 'd']) tasks.finish(name);
  expect(await Promise.all(runs)).toEqual(['a', 'b', 'c', 'd']);
});

test('a newcomer does not overtake the one whose turn it is', async () => {
  const tasks = makeTasks(new Semaphore(1));
  const runs = [tasks.start('a'), tasks.start('b')];
  tasks.finish('a');
  await runs[0];
  runs.push(tasks.start('c'));
  await Promise.resolve();
  expect(tasks.started).toEqual(['a', 'b']);
  tasks.finish('b');
  await runs[1];
  await Promise.resolve();
  tasks.finish('c');
  await Promise.all(runs);
});

test('a failure releases its permit and reaches its caller', async () => {
  const tasks = makeTasks(new Semaphore(1));
  const runs = [tasks.start('a'), tasks.start('b')];
  tasks.finish('a', new Error('boom'));
  await expect(runs[0]).rejects.toThrow('boom');
  await Promise.resolve();
  tasks.finish('b');
  expect(await runs[1]).toBe('b');
});

test('a task that throws at once releases its permit', async () => {
  const semaphore = new Semaphore(1);
  const fail = (): Promise<never> => {
    throw new Error('boom');
  };
  await expect(semaphore.run(fail)).rejects.toThrow('boom');
  expect(await semaphore.run(() => Promise.resolve('next'))).toBe('next');
});

test('permits are not multiplied by handing them on', async () => {
  const semaphore = new Semaphore(3);
  let inside = 0;
  let most = 0;
  const task = async (): Promise<void> => {
    most = Math.max(most, ++inside);
    await Promise.resolve();
    inside--;
  };
  await Promise.all(Array.from({ length: 50 }, () => semaphore.run(task)));
  expect({ most, inside }).toEqual({ most: 3, inside: 0 });
});
