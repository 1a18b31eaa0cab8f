import * as z from 'zod';

const description = z.string().max(500).optional().describe('why; for people');

export const HTTP_METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** What code of a workbench may be allowed to reach. */
export const Permission = z.discriminatedUnion('type', [
  z.strictObject({
    type: z.literal('http'),
    host: z
      .string()
      .min(1)
      .max(253)
      .describe('host name, or *.name for everything below it; with :port if it is not the usual one'),
    pathPattern: z
      .string()
      .max(2048)
      .optional()
      .describe('path that begins with /; * stands for anything; without it all paths'),
    methods: z.array(z.enum(HTTP_METHODS)).min(1).optional().describe('without it all methods'),
    description,
  }),
  z.strictObject({
    type: z.literal('file'),
    path: z.string().min(1).max(4096).describe('absolute path of a file, or of a folder with all below it'),
    operations: z
      .array(z.enum(['read', 'write']))
      .min(1)
      .describe('what may be done with it'),
    description,
  }),
  z.strictObject({
    type: z.literal('env'),
    variables: z
      .array(z.string().min(1).max(256))
      .min(1)
      .describe('names of variables; * stands for anything'),
    description,
  }),
]);
export type Permission = z.infer<typeof Permission>;

/** An access that was refused. */
export const Denial = z.strictObject({
  action: z.string().describe('what the code tried, such as "GET https://example.org/a"'),
  permission: Permission.describe('grant exactly this to allow it'),
});
export type Denial = z.infer<typeof Denial>;
