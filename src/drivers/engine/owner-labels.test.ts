import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { OURS_FILTER, isOrphan, toOwnerLabels, type Labels } from './owner-labels.ts';

/** Our own labels, with another record of the process. */
async function labelsOf(change: (record: Record<string, unknown>) => unknown): Promise<Labels> {
  const labels = await toOwnerLabels('abc');
  const record = change(JSON.parse(labels['hotcell.process'] ?? '') as Record<string, unknown>);
  return { ...labels, 'hotcell.process': typeof record === 'string' ? record : JSON.stringify(record) };
}

describe('labels', () => {
  test('[CX-13] name the instance and its process', async () => {
    const labels = await toOwnerLabels('abc');
    expect(Object.keys(labels).toSorted()).toEqual(['hotcell.owner', 'hotcell.process']);
    expect(labels['hotcell.owner']).toBe('abc');
    expect(JSON.parse(labels['hotcell.process'] ?? '')).toMatchObject({ pid: process.pid });
  });

  test('[SC-02] the engine is asked for those with an owner', async () => {
    expect(Object.keys(await toOwnerLabels('abc'))).toEqual(expect.arrayContaining(OURS_FILTER.label));
    expect(OURS_FILTER).toEqual({ label: ['hotcell.owner'] });
  });
});

describe('what belongs to', () => {
  test('[SC-02] a living process is no orphan', async () => {
    expect(await isOrphan(await toOwnerLabels('abc'))).toBe(false);
  });

  test('[SC-02] a dead process is one', async () => {
    const { pid } = spawnSync('true');
    expect(await isOrphan(await labelsOf((record) => ({ ...record, pid })))).toBe(true);
  });

  test('[SC-02] a process whose pid has been given to somebody else is one', async () => {
    expect(await isOrphan(await labelsOf((record) => ({ ...record, startTicks: '1' })))).toBe(true);
  });

  test.each([
    ['another machine', { machine: 'elsewhere' }],
    ['another pid namespace', { pidNamespace: 'pid:[1]' }],
  ])('[SC-02] %s is left to that', async (_what, change) => {
    const { pid } = spawnSync('true');
    expect(await isOrphan(await labelsOf((record) => ({ ...record, pid, ...change })))).toBe(false);
  });

  test.each([
    ['no JSON', () => 'hello'],
    ['nothing', () => ''],
    ['other JSON', () => '[]'],
    ['a record without a pid', ({ pid: _pid, ...rest }: Record<string, unknown>) => rest],
    ['a pid that is none', (record: Record<string, unknown>) => ({ ...record, pid: -1 })],
  ])('[SC-02] nobody that can be read (%s) is left alone', async (_what, change) => {
    expect(await isOrphan(await labelsOf(change))).toBe(false);
  });

  test.each<[string, Labels | undefined]>([
    ['no labels', undefined],
    ['other labels', { 'com.docker.compose.project': 'x' }],
    ['only an owner', { 'hotcell.owner': 'abc' }],
  ])('[SC-02] somebody else (%s) is left alone', async (_what, labels) => {
    expect(await isOrphan(labels)).toBe(false);
  });

  test('[SC-02] a dead process, but without an owner, is left alone', async () => {
    const { 'hotcell.owner': _owner, ...labels } = await labelsOf((record) => ({
      ...record,
      startTicks: '1',
    }));
    expect(await isOrphan(labels)).toBe(false);
  });
});
