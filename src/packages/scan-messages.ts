import * as z from 'zod';

/** What the process is asked that reads imports. */
export const ScanQuestion = z.strictObject({ code: z.string(), fileName: z.string() });
export type ScanQuestion = z.infer<typeof ScanQuestion>;

/** SECURITY: it has read hostile code, so what it says is checked. */
export const ScanReply = z.discriminatedUnion('ok', [
  z.strictObject({
    ok: z.literal(true),
    packages: z.array(z.strictObject({ name: z.string(), range: z.union([z.string(), z.undefined()]) })),
    eager: z.array(z.string()),
    code: z.string(),
    warnings: z.array(z.string()),
  }),
  z.strictObject({
    ok: z.literal(false),
    problem: z.strictObject({
      kind: z.enum(['syntax', 'import']),
      message: z.string(),
      line: z.int(),
      column: z.int(),
      frame: z.string(),
    }),
  }),
]);
