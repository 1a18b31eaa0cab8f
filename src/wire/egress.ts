import * as z from 'zod';

export const EGRESS_PRESETS = ['npm', 'pypi', 'github'] as const;

const HOST =
  /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?(?::\d{1,5})?$/i;

/** A preset, a host name, or `*.` and a name for everything below it; with `:port` where it is neither 80 nor 443. */
export const HostPattern = z
  .string()
  .max(260)
  .refine((text) => EGRESS_PRESETS.some((preset) => preset === text) || HOST.test(text), {
    message: `must be a host name such as example.org or *.example.org, or one of ${EGRESS_PRESETS.join(', ')}`,
  });

/** Body of `PUT …/egress`: replaces the list of the session. */
export const EgressRequest = z.strictObject({ allow: z.array(HostPattern).max(256) });

export const EgressRefusal = z.object({
  at: z.string().describe('ISO 8601'),
  host: z.string().describe('as the program asked for it'),
  port: z.int(),
  reason: z.string().describe('why, for a person'),
  code: z.enum([
    'not_allowed',
    'ip_literal',
    'private_address',
    'port',
    'sni_mismatch',
    'unresolvable',
    'malformed',
  ]),
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
