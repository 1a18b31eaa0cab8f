import * as z from 'zod';
import { POLICY_SETTINGS } from '../../policy/settings.ts';
import { SessionSettings } from '../../sessions/settings.ts';
import { group, whole } from '../../core/setting-values.ts';

const MiB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60_000;
const LONGEST_KEPT_DAYS = 3650;

const { tenants: _tenants, ...policy } = POLICY_SETTINGS;

const Cidr = z.union([z.cidrv4(), z.cidrv6()]);

/** The section `sessions` of the configuration. */
export const SessionConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('serve /v1/sessions'),
  ...SessionSettings.shape,
  ...policy,
  bodyLimitBytes: whole(64 * MiB, { min: 1024 }).describe('largest request body with files or input'),
  keepVolumesMs: whole(7 * DAY_MS, { min: 0, max: LONGEST_KEPT_DAYS * DAY_MS }).describe(
    'how long the dependencies of a project that nobody uses are kept',
  ),
  egress: group('the way out of sessions with a network', {
    refuse: z.array(Cidr).default([]).describe('further address ranges that nobody may reach'),
    permit: z
      .array(Cidr)
      .default([])
      .describe(
        'ranges that are refused by default, such as those of private networks, and may be reached all the same',
      ),
  }),
});
export type SessionConfig = z.infer<typeof SessionConfig>;
