import { describe, expect, test } from 'vitest';
import { judgeWalls, parseReport } from './judge-walls.ts';

const paths = { masked: ['/proc/kcore'], readOnly: ['/proc/sys'] };
const expected = { id: 2007, host: 'code-runner', paths, diskBytes: 65_536 };

const NONE = '0000000000000000';
const STATUS = [
  'Pid:\t2',
  'PPid:\t1',
  'Uid:\t1000\t1000\t1000\t1000',
  'Gid:\t1000\t1000\t1000\t1000',
  ...['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((name) => `${name}:\t${NONE}`),
  'NoNewPrivs:\t1',
  'Seccomp:\t2',
  'Seccomp_filters:\t2',
].join('\n');
const MOUNTS = [
  '1 0 0:1 / / ro,relatime - ext4 /dev/x rw',
  '2 1 0:2 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1024k',
  '3 2 0:3 / /tmp rw,nosuid,nodev - tmpfs tmpfs rw,size=64k,nr_inodes=1024',
  '4 1 0:4 / /proc rw - proc proc rw',
  '5 4 0:5 /null /proc/kcore rw - devtmpfs devtmpfs rw',
  '6 4 0:4 /sys /proc/sys ro - proc proc rw',
  '7 1 0:5 /null /dev/null rw - devtmpfs devtmpfs rw',
].join('\n');

const GOOD: Readonly<Record<string, string>> = {
  '/proc/self/status': STATUS,
  '/proc/self/uid_map': '      1000       2007          1\n',
  '/proc/self/gid_map': '      1000       2007          1\n',
  '/proc/self/setgroups': 'deny\n',
  '/proc/self/mountinfo': MOUNTS,
  '/proc/sys/kernel/hostname': 'code-runner\n',
  '/proc/self/net/dev': 'Inter-|   Receive\n face |bytes\n    lo:       0\n',
};
const judged = (changes: Readonly<Record<string, string>> = {}): string | undefined =>
  judgeWalls(new Map(Object.entries({ ...GOOD, ...changes })), expected);
const inStatus = (from: string, to: string): Record<string, string> => ({
  '/proc/self/status': STATUS.replace(from, to),
});
const inMounts = (from: string, to: string): Record<string, string> => ({
  '/proc/self/mountinfo': MOUNTS.replace(from, to),
});

describe('walls', () => {
  test('[SC-03] that stand have no problem', () => {
    expect(judged()).toBeUndefined();
  });

  test.each([
    ['another user', inStatus('Uid:\t1000', 'Uid:\t0'), 'user'],
    ['a capability', inStatus(`CapBnd:\t${NONE}`, 'CapBnd:\t0000000000000080'), 'CapBnd'],
    ['new privileges', inStatus('NoNewPrivs:\t1', 'NoNewPrivs:\t0'), 'new privileges'],
    ['no filter', inStatus('Seccomp:\t2', 'Seccomp:\t0'), 'filter'],
    ['one filter only', inStatus('Seccomp_filters:\t2', 'Seccomp_filters:\t1'), 'filters'],
    ['processes of others', inStatus('Pid:\t2', 'Pid:\t77'), 'process number'],
    ['the id of another run', { '/proc/self/uid_map': '1000 2008 1\n' }, 'user map'],
    ['more ids', { '/proc/self/gid_map': '0 0 65536\n' }, 'group map'],
    ['groups', { '/proc/self/setgroups': 'allow\n' }, 'setgroups'],
    ['another host name', { '/proc/sys/kernel/hostname': 'machine\n' }, 'host name'],
    ['a network', { '/proc/self/net/dev': ' lo: 0\n eth0: 0\n' }, 'network'],
    ['the workdir of all', inMounts('size=64k', 'size=65k'), 'workdir'],
    ['no mask', inMounts('/proc/kcore', '/proc/elsewhere'), '/proc/kcore can be read'],
    ['a /proc/sys to write to', inMounts('/proc/sys ro', '/proc/sys rw'), '/proc/sys can be written to'],
    ['another place to write to', inMounts('/ ro,', '/ rw,'), '/ can be written to'],
    ['nothing at all', { '/proc/self/status': '' }, 'unknown'],
  ])('[SC-03] with %s are none', (_, changes, words) => {
    expect(judged(changes)).toContain(words);
  });
});

test('a report is read as it was said, whatever is in the files', () => {
  const files = { '/a': 'x\n/b\n3\n', '/b': '', '/c': 'ende' };
  const said = Object.entries(files).map(([path, text]) => `${path}\n${text.length}\n${text}`);
  expect(Object.fromEntries(parseReport(Buffer.from(said.join(''))))).toEqual(files);
  expect([...parseReport(Buffer.from('nonsense'))]).toEqual([]);
});
