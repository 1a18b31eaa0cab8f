import * as z from 'zod';
import { whole } from '../../core/setting-values.ts';

const GiB = 1024 ** 3;
const LONGEST_AGE_S = 10 * 365 * 24 * 3600;

/** The section `packages` of the configuration. */
export const PackagesConfig = z.strictObject({
  dir: z
    .string()
    .min(1)
    .optional()
    .describe('where installed packages are kept; otherwise ~/.bun-runner-mcp/packages'),
  minimumAgeSeconds: whole(0, { min: 0, max: LONGEST_AGE_S }).describe(
    'versions of npm packages that were released later than this are not installed',
  ),
  mostBytes: whole(5 * GiB, { min: 0 }).describe(
    'disk that packages may take; those that nobody used for longest are removed',
  ),
  python: z
    .boolean()
    .default(false)
    .describe('install what Python code of /execute imports, from the index that pip is configured with'),
});
export type PackagesConfig = z.infer<typeof PackagesConfig>;
