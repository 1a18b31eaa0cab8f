import { describe, expect, test } from 'vitest';
import type { FailedInstall } from './ecosystem.ts';
import type { InstallRequest } from './install-request.ts';
import { explainNpm } from './npm-failure.ts';

const REQUEST: InstallRequest = {
  ecosystem: 'npm',
  specs: [
    { name: 'ms', range: undefined },
    { name: 'zod', range: '9' },
  ],
  registry: { variables: {}, hosts: [] },
  platform: 'test',
  minimumReleaseAgeSeconds: 3 * 86_400,
};

const explain = (words: string, more: Partial<FailedInstall> = {}): { message: string; code: string } =>
  explainNpm({
    request: REQUEST,
    words,
    refusals: [],
    isTooLarge: false,
    diskBytes: 1_000_000,
    ...more,
  });

describe('[MC-10] why a package cannot be installed', () => {
  test.each([
    [
      'error: GET http://r.example.org/zod - 404\nerror: zod@9 failed to resolve\n',
      'zod cannot be installed: the registry has no such package',
    ],
    [
      'error: No version matching "9" found for specifier "zod" (but package exists)\nerror: zod@9 failed to resolve',
      'zod cannot be installed: there is no version 9',
    ],
    [
      'error: Package "zod" with tag "n" not found, but package exists\nerror: zod@n failed to resolve',
      'zod cannot be installed: there is no version n',
    ],
    [
      'error: No version matching "9" found for specifier "zod" (blocked by minimum-release-age: 259200 seconds)\nerror: zod@9 failed to resolve',
      'zod cannot be installed: no version that fits is older than 3 days',
    ],
    [
      'error: No version matching ">=1 <2" found for specifier "@a/b" (but package exists)\nerror: @a/b@>=1 <2 failed to resolve',
      '@a/b cannot be installed: there is no version >=1 <2',
    ],
    [
      'error: ConnectionRefused downloading package manifest zod\n',
      'zod cannot be installed: the registry cannot be reached (ConnectionRefused downloading package manifest zod)',
    ],
    [
      'error: GET http://r.example.org/zod - 503',
      'ms, zod cannot be installed: the registry cannot be reached (GET http://r.example.org/zod - 503)',
    ],
    ['error: ENOSPC: no space left on device', 'ms, zod cannot be installed: it is too large'],
    [
      'error: Fail extracting tarball from zod',
      'zod cannot be installed: its tarball is broken, or larger than the 1.0 MB of the cell',
    ],
    ['', 'ms, zod cannot be installed: bun gave no reason'],
    ['something else\n', 'ms, zod cannot be installed: something else'],
    [
      'error: \u001b[31mIntegrity check failed\u001b[0m for tarball: zod',
      'zod cannot be installed: [31mIntegrity check failed[0m for tarball: zod',
    ],
  ])('%s', (words, message) => {
    expect(explain(words)).toMatchObject({ code: 'PACKAGE_UNAVAILABLE', message });
  });

  test('the refusal of the gate comes before all else', () => {
    const refusals = [
      { at: '', host: 'x.example.org', port: 443, code: 'not_allowed' as const, reason: 'not on the list' },
    ];
    expect(
      explain('error: GET http://x.example.org/zod - 403\nerror: zod@9 failed to resolve', { refusals }),
    ).toMatchObject({
      message: 'zod cannot be installed: the gate refuses x.example.org: not on the list',
    });
  });

  test('nobody can make it long', () => {
    const names = Array.from({ length: 1000 }, (_, index) => `error: p${index}@1 failed to resolve`);
    expect(explain(names.join('\n')).message.length).toBeLessThan(500);
    expect(explain(`error: ${'x'.repeat(100_000)}`).message.length).toBeLessThan(500);
    expect(explain(`error: ${'x'.repeat(100_000)}@1 failed to resolve`).message.length).toBeLessThan(500);
  });
});
