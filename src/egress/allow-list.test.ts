import { describe, expect, test } from 'vitest';
import { AllowList, type Wanted } from './allow-list.ts';
import { canonicalHost } from './host-name.ts';
import type { PresetTable } from './presets.ts';

const PRESETS: PresetTable = {
  npm: { hosts: ['packages.example', 'scoped.example:4873'] },
  pypi: { hosts: [], problem: 'pip cannot be asked for its registry: python3 is not installed' },
  github: { hosts: ['*.hub.example'] },
};

const tunnelTo = (host: string, port = 443, usualPort = 443): Wanted => ({
  to: { host, port },
  usualPort,
  request: undefined,
});

const verdict = (allow: readonly string[], host: string, port = 443, usualPort = 443): string =>
  new AllowList(allow, PRESETS).check(tunnelTo(canonicalHost(host) ?? host, port, usualPort))?.code ??
  'allowed';

describe('an allow-list', () => {
  test.each([
    [['example.org'], 'example.org', 'allowed'],
    [['Example.ORG.'], 'example.org', 'allowed'],
    [['example.org'], 'EXAMPLE.org.', 'allowed'],
    [['example.org'], 'www.example.org', 'not_allowed'],
    [['example.org'], 'example.org.evil.net', 'not_allowed'],
    [['example.org'], 'notexample.org', 'not_allowed'],
    [['example.org'], 'org', 'not_allowed'],
    [['*.example.org'], 'www.example.org', 'allowed'],
    [['*.example.org'], 'a.b.c.example.org', 'allowed'],
    [['*.example.org'], 'example.org', 'not_allowed'],
    [['*.example.org'], 'notexample.org', 'not_allowed'],
    [['*.example.org'], 'www.example.org.evil.net', 'not_allowed'],
    [['xn--bcher-kva.example'], 'XN--bcher-kva.example', 'allowed'],
    [[], 'example.org', 'not_allowed'],
    [['*'], 'example.org', 'not_allowed'],
    [['*.'], 'example.org', 'not_allowed'],
    [[''], 'example.org', 'not_allowed'],
    [['127.0.0.1'], '127.0.0.1', 'not_allowed'],
    [['ex*mple.org'], 'example.org', 'not_allowed'],
  ])('[RS-15] %j and %s: %s', (allow, host, expected) => {
    expect(verdict(allow, host)).toBe(expected);
  });

  test('[RS-15] allows the usual port, or the one that a pattern names and no other', () => {
    expect(verdict(['example.org'], 'example.org', 80, 80)).toBe('allowed');
    expect(verdict(['example.org'], 'example.org', 80, 443)).toBe('port');
    expect(verdict(['example.org'], 'example.org', 443, 80)).toBe('port');
    expect(verdict(['example.org'], 'example.org', 22)).toBe('port');
    expect(verdict(['example.org:8443'], 'example.org', 8443)).toBe('allowed');
    expect(verdict(['example.org:8443'], 'example.org', 443)).toBe('port');
    expect(verdict(['example.org:8443', '*.org'], 'example.org', 443)).toBe('allowed');
  });

  test('[RS-15] has what its presets stand for, and only of those that were asked for', () => {
    expect(new AllowList(['npm', 'example.org'], PRESETS).hosts).toEqual([
      'packages.example',
      'scoped.example:4873',
    ]);
    expect(verdict(['npm'], 'packages.example')).toBe('allowed');
    expect(verdict(['npm'], 'scoped.example', 4873)).toBe('allowed');
    expect(verdict(['npm'], 'www.hub.example')).toBe('not_allowed');
    expect(verdict(['github'], 'www.hub.example')).toBe('allowed');
    expect(verdict(['npm'], 'npm')).toBe('not_allowed');
  });

  test('[RS-15] says why a preset is empty', () => {
    const refused = new AllowList(['pypi'], PRESETS).check(tunnelTo('example.org'));
    expect(refused?.reason).toContain('python3 is not installed');
    expect(new AllowList(['npm'], PRESETS).check(tunnelTo('example.org'))?.reason).toBe(
      'not on the allow-list of this session',
    );
  });
});
