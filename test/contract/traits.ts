import { expect } from 'vitest';
import type { Driver } from '../../src/core/driver.ts';
import { bash, finish, specOf, type Subject } from './cells.ts';

/** What a driver says of itself is so: it can what it says, and refuses the rest. */
export const TRAITS = {
  'a command has a terminal, or is refused one': async ({ driver }: Subject) => {
    // Runs have none: a device less to attack.
    const cell = await driver.create({ ...specOf(undefined), kind: 'session' });
    const starting = cell.exec({
      ...bash('test -t 1 && echo terminal'),
      terminal: { rows: 20, columns: 70 },
    });
    if (driver.traits.terminals) {
      const exec = await starting;
      expect(exec.resize === undefined).toBe(false);
      expect((await finish(exec)).stdout).toBe('terminal\r\n');
    } else await expect(starting).rejects.toMatchObject({ code: 'POLICY_UNENFORCEABLE' });
    const plain = await cell.exec(bash('test -t 1 || echo none'));
    expect([(await finish(plain)).stdout, plain.resize === undefined]).toEqual(['none\n', true]);
    await cell.dispose();
  },
  'who has no workers refuses them': async ({ driver }: Subject) => {
    const folders = [{ name: 'work', folder: '/tmp', at: '/workspace', writable: true }] as const;
    for (const wish of [{ kind: 'worker' }, { folders }, { owner: { uid: 1000, gid: 1000 } }] as const)
      await expect(driver.create({ ...specOf(undefined), ...wish })).rejects.toMatchObject({
        code: 'POLICY_UNENFORCEABLE',
      });
  },
  'whose cells end with the server makes none that lasts': async ({ driver }: Subject) => {
    const spec = { ...specOf(undefined), lasting: { store: 'abcdefabcdef' } };
    await expect(driver.create(spec)).rejects.toMatchObject({ code: 'SESSIONS_UNAVAILABLE' });
    const cell = await driver.create(specOf(undefined));
    const exec = await cell.exec(bash('true'));
    expect([cell.lasting, cell.freezer, exec.lasting]).toEqual([undefined, undefined, undefined]);
    await finish(exec);
    await cell.dispose();
  },
};

/** What only some are held to, by what they say of themselves; the others have a suite of their own for what they can. */
export const HELD_TO: Readonly<Partial<Record<string, (driver: Driver) => boolean>>> = {
  'who has no workers refuses them': ({ traits }) => !traits.workers,
  'whose cells end with the server makes none that lasts': ({ lasting }) => lasting === undefined,
} satisfies Partial<Record<keyof typeof TRAITS, (driver: Driver) => boolean>>;
