import * as z from 'zod';
import { EgressRefusal } from '../core/egress-refusal.ts';
import { HostPattern } from '../core/host-pattern.ts';

/** Body of `PUT …/egress`: replaces the list of the session. */
export const EgressRequest = z.strictObject({ allow: z.array(HostPattern).max(256) });

export const EgressReply = z.object({
  enabled: z.boolean().describe('false: the session was made without a network, and that cannot be changed'),
  allow: z.array(z.string()).describe('as asked for'),
  hosts: z.array(z.string()).describe('what the presets stand for here'),
  allowed_count: z.int().describe('connections that were let through'),
  refused_count: z.int(),
  refusals: z.array(EgressRefusal).describe('the latest ones'),
});
export type EgressReply = z.infer<typeof EgressReply>;
