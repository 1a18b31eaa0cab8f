import { describe, expect, test } from 'vitest';
import { ownerRecord } from '../process/owner.ts';
import { toContainerId } from './container-id.ts';
import { isOf } from '../engine/owner-labels.ts';
import { isAppleOrphan, toAppleLabels, toCellLabels, toLabelWords } from './labels.ts';

/** What the CLI takes for a name. */
const LEGAL = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{1,62}$/;

describe('the id of a container', () => {
  test.each(['code-runner-python-ab12', 'x', '', '--all', 'Ünï ..', 'a'.repeat(300), '-.-'])(
    '[CX-13] of %j is one that the CLI takes',
    (name) => {
      expect(toContainerId(name)).toMatch(LEGAL);
    },
  );

  test('[SC-02] begins with the name and is never the same twice', () => {
    const ids = Array.from({ length: 1000 }, () => toContainerId('code-runner-python-ab12'));
    expect(new Set(ids).size).toBe(1000);
    expect(ids.every((id) => id.startsWith('code-runner-python-ab12-'))).toBe(true);
  });
});

describe('labels', () => {
  test('[MC-13] have one equal sign each, which is all that the CLI can read', async () => {
    const labels = toCellLabels(await toAppleLabels('abc'), { name: 'a=b', kind: 'run' });
    const values = toLabelWords(labels).filter((word) => word !== '--label');
    expect(values).toHaveLength(4);
    expect(values.filter((value) => value.split('=').length !== 2)).toEqual([]);
  });

  test('[SC-02] of a living server are no orphan’s', async () => {
    const labels = await toAppleLabels('abc');
    expect(await isAppleOrphan(labels)).toBe(false);
    expect([isOf(labels, 'abc'), isOf(labels, 'abd')]).toEqual([true, false]);
  });

  const encode = (record: string): string => Buffer.from(record).toString('base64url');
  const changed = async (change: object): Promise<string> =>
    encode(JSON.stringify({ ...(JSON.parse(await ownerRecord()) as object), ...change }));

  test('[SC-02] of a dead server are', async () => {
    const dead = await changed({ pid: 2 ** 22 - 1 });
    expect(await isAppleOrphan({ 'hotcell.owner': 'abc', 'hotcell.process': dead })).toBe(true);
  });

  test('[SC-02] whoever cannot be judged is left alone', async () => {
    const elsewhere = await changed({ pid: 2 ** 22 - 1, machine: 'another' });
    const dead = await changed({ pid: 2 ** 22 - 1 });
    for (const labels of [
      {},
      { 'hotcell.owner': 'abc' },
      { 'hotcell.process': dead },
      { 'hotcell.owner': 'abc', 'hotcell.process': 'nonsense' },
      { 'hotcell.owner': 'abc', 'hotcell.process': '' },
      { 'hotcell.owner': 'abc', 'hotcell.process': elsewhere },
    ])
      expect([labels, await isAppleOrphan(labels)]).toEqual([labels, false]);
  });
});
