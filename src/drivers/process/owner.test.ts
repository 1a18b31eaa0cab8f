import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { afterEach, describe, expect, test } from 'vitest';
import { judgeOwner, ownerRecord, reachablePid } from './owner.ts';
import { HELPER_ENV } from './run-command.ts';

const parse = (record: string): Record<string, unknown> => JSON.parse(record) as Record<string, unknown>;
const recordOf = async (changes: object): Promise<string> =>
  JSON.stringify({ ...parse(await ownerRecord()), ...changes });

function machineName(): string {
  try {
    return readFileSync('/etc/machine-id', 'utf8').trim() || hostname();
  } catch {
    return hostname();
  }
}

const ownPlatform = process.platform;
const pretend = (platform: string) => Object.defineProperty(process, 'platform', { value: platform });
afterEach(() => pretend(ownPlatform));

describe('a record', () => {
  test('[SC-02] names the process, its start, its namespace and its machine', async () => {
    expect(parse(await ownerRecord())).toEqual({
      pid: process.pid,
      startTicks: readFileSync('/proc/self/stat', 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[19],
      pidNamespace: readlinkSync('/proc/self/ns/pid'),
      machine: machineName(),
    });
  });

  test('[SC-02] of a living process is alive', async () => {
    expect(await judgeOwner(await ownerRecord())).toBe('alive');
  });

  test('[SC-02] of another living process is alive, until it ends', async () => {
    const child = spawn('sleep', ['60']);
    await once(child, 'spawn');
    const startTicks = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')[19];
    const record = await recordOf({ pid: child.pid, startTicks });
    expect(await judgeOwner(record)).toBe('alive');
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(await judgeOwner(record)).toBe('dead');
  });

  test('[SC-02] whose pid belongs to somebody else by now is dead', async () => {
    expect(await judgeOwner(await recordOf({ startTicks: '1' }))).toBe('dead');
  });

  test.each([
    ['machine', { machine: 'elsewhere' }],
    ['pid namespace', { pidNamespace: 'pid:[1]' }],
  ])('[SC-02] of another %s cannot be judged, and counts as alive', async (_what, change) => {
    const { pid } = spawnSync('true');
    expect(await judgeOwner(await recordOf({ pid, startTicks: '1', ...change }))).toBe('alive');
  });

  test('[SC-02] of a version that named no machine is of this one', async () => {
    const { machine: _machine, ...old } = parse(await ownerRecord());
    expect(await judgeOwner(JSON.stringify(old))).toBe('alive');
    expect(await judgeOwner(JSON.stringify({ ...old, startTicks: '1' }))).toBe('dead');
  });

  test.each(['', 'x', 'null', '[]', '{}', '{"pid":"1"}', '{"pid":0}', '{"pid":-1}', '{"pid":1.5}'])(
    '[SC-02] %j cannot be read',
    async (text) => {
      const rest = '"startTicks":"1","pidNamespace":"","machine":"x"';
      expect(await judgeOwner(text.replace(/(\d)\}$/, `$1,${rest}}`))).toBe('unreadable');
    },
  );
});

describe('a start that nobody could tell', () => {
  test('[SC-02] is no reason to take a living process for dead', async () => {
    expect(await judgeOwner(await recordOf({ startTicks: '' }))).toBe('alive');
    const { pid } = spawnSync('true');
    expect(await judgeOwner(await recordOf({ pid, startTicks: '' }))).toBe('dead');
  });

  test('[SC-02] now, for want of a descriptor or a program, is none either', async () => {
    const { machine, pid } = parse(await ownerRecord());
    pretend('win32');
    const path = HELPER_ENV['PATH'];
    Object.assign(HELPER_ENV, { PATH: '/nonexistent' });
    try {
      expect(parse(await ownerRecord())).toMatchObject({ startTicks: '', pidNamespace: '' });
      const record = { machine, pidNamespace: '', startTicks: 'Mon Nov 16 2026' };
      expect(await judgeOwner(JSON.stringify({ ...record, pid }))).toBe('alive');
      expect(await judgeOwner(JSON.stringify({ ...record, pid: spawnSync('/bin/true').pid }))).toBe('dead');
    } finally {
      Object.assign(HELPER_ENV, { PATH: path });
    }
  });
});

describe('where there is no /proc', () => {
  test('[SC-02] ps tells the start', async () => {
    pretend('darwin');
    const own = parse(await ownerRecord());
    expect(own).toMatchObject({ pid: process.pid, pidNamespace: '' });
    expect(own['startTicks']).toMatch(/^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d \d{4}$/);
    expect(await judgeOwner(JSON.stringify(own))).toBe('alive');
    expect(await judgeOwner(JSON.stringify({ ...own, startTicks: 'Mon Nov 16 00:00:00 2020' }))).toBe('dead');
    const { pid } = spawnSync('true');
    expect(await judgeOwner(JSON.stringify({ ...own, pid }))).toBe('dead');
  });
});

test('[SC-02] signals reach a process of this machine and namespace only', async () => {
  expect(reachablePid(await ownerRecord())).toBe(process.pid);
  expect(reachablePid(await recordOf({ machine: 'elsewhere' }))).toBeUndefined();
  expect(reachablePid(await recordOf({ pidNamespace: 'pid:[1]' }))).toBeUndefined();
  expect(reachablePid('{}')).toBeUndefined();
});
