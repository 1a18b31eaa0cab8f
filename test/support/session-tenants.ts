import { hash } from 'node:crypto';

/** Keys of two tenants that know nothing of each other. */
export const KEYS = ['key-of-the-first', 'key-of-the-second'] as const;

/** For `hotcell up`: the quotas of the first one, which has none unless given. */
export function toTenants(quotas: object = {}): string[] {
  const [first, second] = KEYS.map((key) => ({ keySha256: hash('sha256', key, 'hex') }));
  return ['--set', `tenants=${JSON.stringify({ first: { ...first, quotas }, second })}`];
}

export const TENANTS = toTenants();
