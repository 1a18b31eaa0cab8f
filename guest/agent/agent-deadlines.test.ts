import { randomInt } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parseFigures } from '../../src/drivers/agent/report.ts';
import { waitFor } from '../../test/support/leftovers.ts';
import { describeThatNeeds } from '../../test/support/needs.ts';
import { whyNoAgent } from './harness.ts';
import { bytesOf, withLasting, type Heard } from './lasting-harness.ts';

const describeAgent = describeThatNeeds(whyNoAgent());

/** A word by which programs of this machine can be found, whoever started them. */
const mark = (): string => `4${randomInt(1e9)}`;

function countWith(word: string): number {
  return globSync('/proc/[0-9]*/cmdline').filter((file) => {
    try {
      return readFileSync(file, 'latin1').split('\0').includes(word);
    } catch {
      return false;
    }
  }).length;
}

function figuresOf({ last }: Heard): ReadonlyMap<string, number> {
  return parseFigures(last.find(({ type }) => type === 'X')?.payload ?? Buffer.alloc(0));
}

describeAgent('the deadline of a command', () => {
  test('[RS-22] ends it with everything it started, without any server, and the next one hears of it', () =>
    withLasting(async (agent, first) => {
      const word = mark();
      const stubborn = `trap "" TERM; echo one; setsid sleep ${word} & sleep ${word}; sleep ${word}`;
      first.sh(1, stubborn);
      await first.hears(1, 'one');
      await waitFor('both programs', () => countWith(word) === 2);
      first.send('A', 1, '100 100');
      agent.hangUp('deaf');
      await waitFor('their end', () => countWith(word) === 0);
      const next = agent.connect();
      expect(await next.greet()).toEqual([1]);
      next.resume(1, 0);
      const heard = await next.end(1);
      const figures = figuresOf(heard);
      expect([bytesOf(heard).toString(), figures.get('expired'), (figures.get('wait') ?? 0) & 0x7f]).toEqual([
        'one\n',
        1,
        9,
      ]);
    }));

  test('[RS-22] is kept also by an agent whose words nobody takes', () =>
    withLasting(async (agent, first) => {
      const word = mark();
      first.sh(1, `echo one; read go; exec yes ${word}`);
      await first.hears(1, 'one');
      agent.hangUp('deaf');
      first.send('A', 1, '500 100');
      first.send('I', 1, 'go\n');
      await waitFor('the flood', () => countWith(word) === 1);
      await waitFor('its end', () => countWith(word) === 0);
      const next = agent.connect();
      await next.greet();
      next.resume(1, 0);
      await next.hears(1, `${word}\n`);
      next.send('K', 1);
      expect(figuresOf(await next.end(1)).get('expired')).toBe(1);
    }, 'fifos'));

  test('[RS-22] gives it time to say goodbye', () =>
    withLasting(async (_agent, first) => {
      first.sh(1, 'trap "echo bye; exit 3" TERM; echo one; while :; do sleep 0.01; done');
      await first.hears(1, 'one');
      first.send('A', 1, '50 60000');
      const heard = await first.end(1);
      const figures = figuresOf(heard);
      expect(bytesOf(heard, 'O').toString()).toBe('one\nbye\n');
      expect([figures.get('expired'), (figures.get('wait') ?? 0) >> 8]).toEqual([1, 3]);
    }));

  test.each([
    ['put off', '60000 0'],
    ['taken back', ''],
    ['no number', '1 x'],
  ])('[RS-22] is not kept when it was %s', (_what, words) =>
    withLasting(async (_agent, first) => {
      first.sh(1, 'sleep 0.4; echo fine');
      first.send('A', 1, '100 0');
      first.send('A', 1, words);
      // Of one that is not there, or no longer.
      first.send('A', 7, '0 0');
      const heard = await first.end(1);
      expect([bytesOf(heard).toString(), figuresOf(heard).get('expired')]).toEqual(['fine\n', undefined]);
    }),
  );
});

describeAgent('the deadline of a cell', () => {
  test('[RS-22] ends it with all its commands, without any server', () =>
    withLasting(async (agent, first) => {
      const word = mark();
      first.sh(1, `trap "echo polite; exit" TERM; echo one; while :; do sleep 0.01; done`);
      first.sh(2, `trap "" TERM; echo one; sleep ${word}; sleep ${word}`);
      for (const id of [1, 2]) await first.hears(id, 'one');
      first.send('A', 0, '100 500');
      await first.hears(1, 'polite');
      agent.hangUp('discarding');
      await agent.closed;
      expect(countWith(word)).toBe(0);
    }));

  test('[RS-22] can be put off', () =>
    withLasting(async (_agent, first) => {
      first.send('A', 0, '100 0');
      first.send('A', 0, '60000 0');
      expect(await first.run(1, 'sleep 0.4; echo fine')).toBe('fine\n');
    }));
});
