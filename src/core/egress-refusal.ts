import * as z from 'zod';

export const REFUSAL_CODES = [
  'not_allowed',
  'ip_literal',
  'private_address',
  'port',
  'sni_mismatch',
  'unresolvable',
  'malformed',
] as const;

/** A connection of a program that the gate did not let through. */
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
