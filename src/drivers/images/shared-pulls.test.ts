import { describe, expect, test } from 'vitest';
import { SharedPulls } from './shared-pulls.ts';

const quiet = (): void => {};

function make() {
  let time = 0;
  const pulls = new SharedPulls({
    failureKeptMs: 1000,
    now: () => time,
    isLasting: (error) => error instanceof Error && error.message !== 'passing',
  });
  return { pulls, at: (ms: number) => (time = ms) };
}

describe('at the same time', () => {
  test('two who want the same image share one pull and its progress', async () => {
    const { pulls } = make();
    const gate = Promise.withResolvers<undefined>();
    let begun = 0;
    const pull = async (onProgress: (text: string) => void): Promise<void> => {
      begun++;
      onProgress('first');
      await gate.promise;
      onProgress('second');
    };
    const heard: string[][] = [[], []];
    const first = pulls.join('a', (text) => heard[0]?.push(text), pull);
    await Promise.resolve();
    const second = pulls.join('a', (text) => heard[1]?.push(text), pull);
    gate.resolve(undefined);
    await Promise.all([first, second]);
    expect(begun).toBe(1);
    expect(heard).toEqual([['first', 'second'], ['second']]);
  });

  test('two images are two pulls, and a later one is a new one', async () => {
    const { pulls } = make();
    const begun: string[] = [];
    const join = (name: string): Promise<void> => pulls.join(name, quiet, async () => void begun.push(name));
    await Promise.all([join('a'), join('b')]);
    await join('a');
    expect(begun).toEqual(['a', 'b', 'a']);
  });
});

describe('a failure', () => {
  const failing = async (): Promise<void> => {
    throw new Error('lasting');
  };

  test('is the answer to all who waited, and for a while to those who come later', async () => {
    const { pulls, at } = make();
    await expect(
      Promise.all([pulls.join('a', quiet, failing), pulls.join('a', quiet, failing)]),
    ).rejects.toThrow('lasting');
    at(999);
    await expect(pulls.join('a', quiet, async () => {})).rejects.toThrow('lasting');
    await expect(pulls.join('b', quiet, async () => {})).resolves.toBeUndefined();
    at(1000);
    await expect(pulls.join('a', quiet, async () => {})).resolves.toBeUndefined();
  });

  test('that may pass is not kept', async () => {
    const { pulls } = make();
    const passing = async (): Promise<void> => {
      throw new Error('passing');
    };
    await expect(pulls.join('a', quiet, passing)).rejects.toThrow('passing');
    await expect(pulls.join('a', quiet, async () => {})).resolves.toBeUndefined();
  });

  test('can be forgotten', async () => {
    const { pulls } = make();
    await expect(pulls.join('a', quiet, failing)).rejects.toThrow('lasting');
    pulls.forgetFailures();
    await expect(pulls.join('a', quiet, async () => {})).resolves.toBeUndefined();
  });
});
