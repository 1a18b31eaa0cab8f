import { describe, expect, test } from 'vitest';
import { requestId, setKey, type InstallRequest } from './install-request.ts';
import { NPM } from './npm-ecosystem.ts';

const BASE: InstallRequest = {
  ecosystem: 'npm',
  specs: [
    { name: 'ms', range: undefined },
    { name: 'zod', range: '^3' },
  ],
  registry: { variables: { b: '2', a: '1' }, hosts: ['x', 'y'] },
  platform: 'bun 1 linux x64',
  minimumReleaseAgeSeconds: 0,
};

describe('[MC-11] a request', () => {
  test('has the same name whatever the order of what does not matter', () => {
    const same = { ...BASE, registry: { variables: { a: '1', b: '2' }, hosts: ['y', 'x'] } };
    expect(requestId(same)).toBe(requestId(BASE));
  });

  test.each<[string, Partial<InstallRequest>]>([
    [
      'version',
      {
        specs: [
          { name: 'ms', range: '1' },
          { name: 'zod', range: '^3' },
        ],
      },
    ],
    ['package', { specs: [{ name: 'zod', range: '^3' }] }],
    ['registry', { registry: { variables: { a: '1' }, hosts: ['x', 'y'] } }],
    ['platform', { platform: 'bun 1 linux arm64' }],
    ['ecosystem', { ecosystem: 'pypi' }],
    ['age', { minimumReleaseAgeSeconds: 1 }],
  ])('has another name with another %s', (_what, other) => {
    expect(requestId({ ...BASE, ...other })).not.toBe(requestId(BASE));
  });

  test('trusts nobody and runs nothing', () => {
    const { files, argv } = NPM.plan(BASE);
    expect(JSON.parse(files[0]?.content ?? '')).toEqual({
      private: true,
      dependencies: { ms: 'latest', zod: '^3' },
      trustedDependencies: [],
    });
    expect(argv).toContain('--ignore-scripts');
    expect(argv.join(' ')).not.toContain('age');
    expect(NPM.plan({ ...BASE, minimumReleaseAgeSeconds: 60 }).argv).toContain('--minimum-release-age=60');
  });

  test('sets are named by what is in them and for whom', () => {
    expect(new Set([setKey('a', 'b'), setKey('a', 'c'), setKey('b', 'b'), setKey('a', 'b')]).size).toBe(3);
  });
});
