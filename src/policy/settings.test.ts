import { expect, test } from 'vitest';
import { RULE_NAMES } from './command-rules.ts';
import { PolicySettings } from './settings.ts';

test('[RS-16] [RS-18] without settings all rules hold, callers are limited, and there is one tenant', () => {
  expect(PolicySettings.parse({})).toEqual({
    rules: RULE_NAMES,
    rateLimit: { perMinute: 600, burst: 100 },
    tenants: {},
    audit: { maxBytes: 16 * 1024 * 1024, keep: 9 },
  });
});

test.each([
  [{ rules: ['rm-rooot'] }, 'rules.0'],
  [{ rateLimit: { perMinute: -1 } }, 'rateLimit.perMinute'],
  [{ rateLimit: { burst: 0 } }, 'rateLimit.burst'],
  [{ tenants: { acme: {} } }, 'tenants.acme.keySha256'],
  [{ audit: { file: '' } }, 'audit.file'],
  [{ audit: { maxBytes: 1 } }, 'audit.maxBytes'],
  [{ audit: { keep: -1 } }, 'audit.keep'],
  [{ denyList: [] }, ''],
])('[RS-16] [RS-18] %j is refused, and the setting is named', (settings, path) => {
  expect(PolicySettings.safeParse(settings).error?.issues.map((issue) => issue.path.join('.'))).toEqual([
    path,
  ]);
});

test('[RS-16] an empty list of rules refuses nothing', () => {
  expect(PolicySettings.parse({ rules: [] }).rules).toEqual([]);
});
