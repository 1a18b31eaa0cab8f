import * as z from 'zod';
import { REFUSAL_CODES } from '../core/egress-refusal.ts';
import { HostPattern } from '../core/host-pattern.ts';

/** Body of `PUT …/egress`: replaces the list of the session. */
export const EgressRequest = z.strictObject({ allow: z.array(HostPattern).max(256) });

export const EgressRefusal = z.object({
  at: z.string().describe('ISO 8601'),
  host: z.string().describe('as the program asked for it'),
  port: z.int(),
  reason: z.string().describe('why, for a person'),
  code: z.enum(REFUSAL_CODES),
  scheme: z.enum(['http', 'https']).optional().describe('of a plain request; absent for a tunnel'),
  method: z.string().optional().describe('of a plain request, where it counts'),
  path: z
    .string()
    .optional()
    .describe('of a plain request, without the query; absent where no rule could name it'),
});
export type EgressRefusal = z.infer<typeof EgressRefusal>;

export const EgressReply = z.object({
  enabled: z.boolean().describe('false: the session was made without a network, and that cannot be changed'),
  allow: z.array(z.string()).describe('as asked for'),
  hosts: z.array(z.string()).describe('what the presets stand for here'),
  allowed_count: z.int().describe('connections that were let through'),
  refused_count: z.int(),
  refusals: z.array(EgressRefusal).describe('the latest ones'),
});
export type EgressReply = z.infer<typeof EgressReply>;
