import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { TenantSettings, Tenants } from './tenants.ts';

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex');
const settingsOf = (tenants: unknown): TenantSettings => TenantSettings.parse(tenants);
const problemsOf = (tenants: unknown): string[] =>
  TenantSettings.safeParse(tenants).error?.issues.map(
    ({ path, message }) => `${path.join('.')} ${message}`,
  ) ?? [];

describe('who calls', () => {
  test('[RS-18] without any key everybody is the same tenant', () => {
    const tenants = new Tenants({ tenants: {} });
    expect(tenants.required).toBe(false);
    expect(tenants.authenticate(undefined)).toEqual({ name: 'default', quotas: {} });
    expect(tenants.authenticate('anything')).toEqual({ name: 'default', quotas: {} });
  });

  test('[RS-18] the one key of the server is that of the tenant default', () => {
    const tenants = new Tenants({ apiKey: 'long-enough', tenants: {} });
    expect(tenants.required).toBe(true);
    expect(tenants.authenticate('long-enough').name).toBe('default');
    expect(() => tenants.authenticate(undefined)).toThrowError(
      expect.objectContaining({ code: 'UNAUTHORIZED', message: 'the key is missing' }),
    );
    for (const wrong of ['', 'long-enoug', 'long-enough ', 'LONG-ENOUGH', sha256('long-enough')]) {
      expect(() => tenants.authenticate(wrong)).toThrowError(
        expect.objectContaining({ code: 'UNAUTHORIZED', message: 'the key is wrong' }),
      );
    }
  });

  test('[SC-05] each key leads to its own tenant with its own quotas, and to no other', () => {
    const tenants = new Tenants({
      apiKey: 'key-of-all',
      tenants: settingsOf({
        acme: { keySha256: sha256('key-of-acme'), quotas: { sessions: 2 } },
        globex: { keySha256: sha256('key-of-globex').toUpperCase(), quotas: { cpus: 4 } },
      }),
    });
    expect(tenants.authenticate('key-of-acme')).toEqual({ name: 'acme', quotas: { sessions: 2 } });
    expect(tenants.authenticate('key-of-globex')).toEqual({ name: 'globex', quotas: { cpus: 4 } });
    expect(tenants.authenticate('key-of-all')).toEqual({ name: 'default', quotas: {} });
    expect(() => tenants.authenticate('key-of-initech')).toThrowError('the key is wrong');
  });

  test('[SC-05] keys of tenants alone make a key necessary', () => {
    const tenants = new Tenants({ tenants: settingsOf({ acme: { keySha256: sha256('key-of-acme') } }) });
    expect(tenants.required).toBe(true);
    expect(() => tenants.authenticate(undefined)).toThrowError('the key is missing');
  });

  test('[SC-05] the digest in the settings is no key', () => {
    const keySha256 = sha256('key-of-acme');
    const tenants = new Tenants({ tenants: settingsOf({ acme: { keySha256 } }) });
    expect(() => tenants.authenticate(keySha256)).toThrowError('the key is wrong');
  });

  test('[SC-05] a key with letters beyond ASCII arrives as bytes of the header', () => {
    const key = 'schlüssel-für-alle';
    const asHeader = Buffer.from(key).toString('latin1');
    expect(new Tenants({ apiKey: key, tenants: {} }).authenticate(asHeader).name).toBe('default');
    const tenants = new Tenants({ tenants: settingsOf({ acme: { keySha256: sha256(key) } }) });
    expect(tenants.authenticate(asHeader).name).toBe('acme');
  });

  test('[SC-05] quotas of the tenant default hold with apiKey, with its own key, and without any key', () => {
    const quotas = { sessions: 5 };
    const open = new Tenants({ tenants: settingsOf({ default: { quotas } }) });
    expect([open.required, open.authenticate(undefined)]).toEqual([false, { name: 'default', quotas }]);
    const both = new Tenants({
      apiKey: 'first-key',
      tenants: settingsOf({ default: { keySha256: sha256('second-key'), quotas } }),
    });
    expect(both.authenticate('first-key')).toEqual({ name: 'default', quotas });
    expect(both.authenticate('second-key')).toEqual({ name: 'default', quotas });
  });
});

describe('settings that would mix tenants up', () => {
  test('[SC-05] a tenant without a key', () => {
    expect(problemsOf({ acme: {} })).toEqual(['acme.keySha256 is missing']);
  });

  test('[SC-05] one key for two tenants', () => {
    const key = sha256('the-same-key');
    expect(problemsOf({ acme: { keySha256: key }, globex: { keySha256: key.toUpperCase() } })).toEqual([
      'globex.keySha256 is the key of acme too',
    ]);
    const tenants = settingsOf({ acme: { keySha256: key } });
    expect(() => new Tenants({ apiKey: 'the-same-key', tenants })).toThrowError(
      expect.objectContaining({ code: 'CONFIG_INVALID', field: 'apiKey' }),
    );
  });

  test.each([
    { acme: { keySha256: 'the-key-itself' } },
    { acme: { keySha256: sha256('') } },
    { acme: { keySha256: sha256('').toUpperCase() } },
    { acme: { keySha256: `${sha256('x')}0` } },
    { acme: { keySha256: sha256('x'), quota: {} } },
    { 'a/b': { keySha256: sha256('x') } },
    { '': { keySha256: sha256('x') } },
    { acme: false },
  ])('[SC-05] %j is refused', (tenants) => {
    expect(problemsOf(tenants)).not.toEqual([]);
  });
});
