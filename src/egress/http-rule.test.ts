import { describe, expect, test } from 'vitest';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import { describeAllowed, ruleFor, whyNoRule } from './http-rule.ts';

const refusal = (facts: Partial<EgressRefusal>): EgressRefusal => ({
  at: '2030-01-02T12:00:00.000Z',
  host: 'a.example',
  port: 443,
  reason: 'for a test',
  code: 'not_allowed',
  ...facts,
});

describe('a rule', () => {
  test('[MC-04] that could never allow anything says why', () => {
    expect(whyNoRule({ host: 'a.example' })).toBeUndefined();
    expect(whyNoRule({ host: '*.a.example:8443', pathPattern: '/a/*', methods: ['GET'] })).toBeUndefined();
    for (const host of ['', '*', '127.0.0.1', 'a.example/x', 'user@a.example', 'https://a.example'])
      expect(whyNoRule({ host })).toContain('host must be');
    for (const pathPattern of ['', 'a', '/a/../b', '/a?b'])
      expect(whyNoRule({ host: 'a.example', pathPattern })).toContain('pathPattern must');
  });

  test('[MC-04] is named by a refusal as narrowly as that is possible', () => {
    expect(ruleFor(refusal({}))).toEqual({ host: 'a.example' });
    expect(ruleFor(refusal({ port: 8443, code: 'port' }))).toEqual({ host: 'a.example:8443' });
    expect(ruleFor(refusal({ port: 80, scheme: 'http', method: 'GET', path: '/a' }))).toEqual({
      host: 'a.example',
      pathPattern: '/a',
      methods: ['GET'],
    });
    expect(ruleFor(refusal({ scheme: 'https', method: 'PROPFIND', path: '/a' }))).toEqual({
      host: 'a.example',
      pathPattern: '/a',
    });
    expect(ruleFor(refusal({ port: 443, scheme: 'http' }))).toEqual({ host: 'a.example:443' });
  });

  test.each(['ip_literal', 'private_address', 'sni_mismatch', 'unresolvable', 'malformed'] as const)(
    '[MC-04] is no help against %s',
    (code) => {
      expect(ruleFor(refusal({ code }))).toBeUndefined();
    },
  );

  test('[MC-04] can be read by people', () => {
    expect(describeAllowed('a.example')).toBe('a.example');
    expect(describeAllowed({ host: 'a.example', pathPattern: '/a/*', methods: ['GET', 'HEAD'] })).toBe(
      'GET,HEAD a.example/a/*',
    );
  });
});
