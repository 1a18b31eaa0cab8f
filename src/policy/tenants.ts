import { hash, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import { Quotas } from './quotas.ts';

/** Whoever comes with `apiKey`, and everybody where no key is asked for. */
export const DEFAULT_TENANT = 'default';

const KEY_OF_NOTHING = hash('sha256', '', 'hex');

const TenantName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/,
    'has 1 to 64 letters, digits, _, - and ., and begins with a letter or digit',
  );

const TenantSetting = z.strictObject({
  keySha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits: printf %s "$KEY" | sha256sum')
    .refine((digest) => digest.toLowerCase() !== KEY_OF_NOTHING, 'is the digest of an empty key')
    .optional()
    .describe('SHA-256 of its key in hexadecimal; the key itself stands nowhere'),
  quotas: Quotas.prefault({}).describe('what its sessions may hold together'),
});

/** Tenants by name. `default` may be among them, to give quotas to those who come with `apiKey` or without a key. */
export const TenantSettings = z.record(TenantName, TenantSetting).superRefine((tenants, context) => {
  const owners = new Map<string, string>();
  for (const [name, { keySha256 }] of Object.entries(tenants)) {
    const key = keySha256?.toLowerCase();
    if (key === undefined) {
      if (name !== DEFAULT_TENANT)
        context.addIssue({ code: 'custom', path: [name, 'keySha256'], message: 'is missing' });
      continue;
    }
    const owner = owners.get(key);
    if (owner !== undefined)
      context.addIssue({ code: 'custom', path: [name, 'keySha256'], message: `is the key of ${owner} too` });
    owners.set(key, name);
  }
});
export type TenantSettings = z.infer<typeof TenantSettings>;

/** Who is served, and what they may hold. */
export interface Tenant {
  readonly name: string;
  readonly quotas: Quotas;
}

/** Tells tenants by their keys. */
export class Tenants {
  /** Whether callers must have a key. */
  readonly required: boolean;
  readonly #default: Tenant;
  readonly #keys: { readonly digest: Buffer; readonly tenant: Tenant }[] = [];

  constructor(settings: { readonly apiKey?: string | undefined; readonly tenants: TenantSettings }) {
    this.#default = { name: DEFAULT_TENANT, quotas: {} };
    for (const [name, { keySha256, quotas }] of Object.entries(settings.tenants)) {
      const tenant = { name, quotas };
      if (name === DEFAULT_TENANT) this.#default = tenant;
      if (keySha256 !== undefined) this.#keys.push({ digest: Buffer.from(keySha256, 'hex'), tenant });
    }
    if (settings.apiKey !== undefined) this.#addApiKey(digestOf(Buffer.from(settings.apiKey)));
    this.required = this.#keys.length > 0;
  }

  /** Precondition: `bearer` is what follows `Bearer ` in the header, as Node gives headers, one character per byte. */
  authenticate(bearer: string | undefined): Tenant {
    if (!this.required) return this.#default;
    if (bearer === undefined) throw new HotcellError('UNAUTHORIZED', 'the key is missing');
    const given = digestOf(Buffer.from(bearer, 'latin1'));
    let found: Tenant | undefined;
    // SECURITY: digests have one length and all of them are compared, so the time tells nothing about any key.
    for (const { digest, tenant } of this.#keys) if (timingSafeEqual(given, digest)) found = tenant;
    if (found === undefined) throw new HotcellError('UNAUTHORIZED', 'the key is wrong');
    return found;
  }

  #addApiKey(digest: Buffer): void {
    const owner = this.#keys.find((key) => key.digest.equals(digest))?.tenant.name;
    if (owner !== undefined && owner !== DEFAULT_TENANT)
      throw new HotcellError('CONFIG_INVALID', `apiKey is the key of tenant ${owner} too`, {
        field: 'apiKey',
      });
    this.#keys.push({ digest, tenant: this.#default });
  }
}

function digestOf(bytes: Uint8Array): Buffer {
  return hash('sha256', bytes, 'buffer');
}
