import { describe, expect, test } from 'vitest';
import { toSeatbeltCommand, toSeatbeltProfile } from './seatbelt.ts';

const NONE = { paths: [], port: undefined, forks: false } as const;

describe('the profile for macOS', () => {
  test('[MC-02] denies by default, and names no network', () => {
    const profile = toSeatbeltProfile(NONE);
    expect(profile.split('\n').slice(0, 2)).toEqual(['(version 1)', '(deny default)']);
    expect(profile).not.toMatch(/network|process-fork|\(allow default\)|\(allow file-read\*\)/);
  });

  test('[MC-04] allows what was granted', () => {
    const profile = toSeatbeltProfile({
      paths: [
        { path: '/Users/a/data', use: 'read' },
        { path: '/private/tmp/work', use: 'write' },
        { path: '/opt/bun', use: 'run' },
      ],
      port: 4711,
      forks: true,
    });
    expect(profile).toContain('(allow file-read* file-map-executable (subpath "/Users/a/data"))');
    expect(profile).toContain('(allow file-read* file-write* (subpath "/private/tmp/work"))');
    expect(profile).toContain('process-exec (subpath "/opt/bun"))');
    expect(profile).toContain('(allow network-outbound (remote ip "localhost:4711"))');
    expect(profile).toContain('(allow process-fork)');
  });

  test('[SC-03] a path never becomes a rule', () => {
    const path = String.raw`/a") (allow default) (x "\\`;
    const profile = toSeatbeltProfile({ ...NONE, paths: [{ path, use: 'read' }] });
    const text = /\(subpath "((?:[^"\\]|\\.)*)"\)\)$/.exec(profile)?.[1];
    expect(text?.replaceAll(/\\(.)/g, '$1')).toBe(path);
  });

  test('[MC-02] is an argument, and the program follows', () => {
    expect(toSeatbeltCommand(NONE, '/opt/bun', ['-x', 'y'])).toEqual([
      '/usr/bin/sandbox-exec',
      '-p',
      toSeatbeltProfile(NONE),
      '/opt/bun',
      '-x',
      'y',
    ]);
  });
});
