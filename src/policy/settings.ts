import * as z from 'zod';
import { RULE_NAMES } from './command-rules.ts';
import { RateLimitSettings } from './rate-limit.ts';
import { TenantSettings } from './tenants.ts';
import { whole } from '../core/setting-values.ts';

const MiB = 1024 * 1024;

const AuditSettings = z.strictObject({
  file: z
    .string()
    .min(1)
    .optional()
    .describe('file for who ran what when, as JSON lines; nothing is recorded unless given'),
  maxBytes: whole(16 * MiB, { min: 64 * 1024 }).describe('size after which a new file is begun'),
  keep: whole(9, { min: 0, max: 1000 }).describe('older files that are kept beside it, as .1, .2, …'),
});
export type AuditSettings = z.infer<typeof AuditSettings>;

/** Keys of the configuration, with their defaults. */
export const POLICY_SETTINGS = {
  rules: z
    .array(z.enum(RULE_NAMES))
    .default([...RULE_NAMES])
    .describe('rules that refuse commands: advice for honest users, the cell is the boundary'),
  rateLimit: RateLimitSettings.prefault({}).describe('how often each user may call for each project'),
  tenants: TenantSettings.default({}).describe(
    'further callers by name, each with the digest of a key and with quotas',
  ),
  audit: AuditSettings.prefault({}).describe('the audit log'),
};

export const PolicySettings = z.strictObject(POLICY_SETTINGS);
export type PolicySettings = z.infer<typeof PolicySettings>;
