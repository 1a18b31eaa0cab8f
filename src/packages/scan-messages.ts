import * as z from 'zod';

/** What the process is asked that reads imports. */
export const ScanQuestion = z.strictObject({ code: z.string(), fileName: z.string() });
export type ScanQuestion = z.infer<typeof ScanQuestion>;

/** SECURITY: it has read hostile code, so what it says is checked. */
export const ImportScan = z.discriminatedUnion('ok', [
  z.strictObject({
    ok: z.literal(true),
    /** Each once, by name. */
    packages: z.array(z.strictObject({ name: z.string(), range: z.union([z.string(), z.undefined()]) })),
    /** What is loaded before the code itself, in this order, such as `zod/v4`. */
    eager: z.array(z.string()),
    /** With plain names in place of `zod@3` and `npm:zod`; everything else stands where it stood. */
    code: z.string(),
    /** For people. */
    warnings: z.array(z.string()),
  }),
  z.strictObject({
    ok: z.literal(false),
    /** Why the code cannot run; nothing needs to be installed for it. */
    problem: z.strictObject({
      kind: z.enum(['syntax', 'import']),
      message: z.string(),
      /** From 1. */
      line: z.int(),
      column: z.int(),
      /** The line and a mark below it. */
      frame: z.string(),
    }),
  }),
]);
export type ImportScan = z.infer<typeof ImportScan>;
export type ScanProblem = Extract<ImportScan, { ok: false }>['problem'];
