import * as z from 'zod';
import { EXECUTION_MODES } from '../../workbench/api.ts';
import { WorkbenchSettings } from '../../workbench/settings.ts';
import { whole } from '../../core/setting-values.ts';

const MiB = 1024 * 1024;

/** The section `mcp` of the configuration. */
export const McpConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('serve /mcp'),
  mode: z
    .enum(EXECUTION_MODES)
    .default(EXECUTION_MODES[0])
    .describe(
      'preload: a confined process of this machine for every run; container: a cell of the driver for every session; EXECUTION_MODE says the same',
    ),
  waitMs: whole(45_000, { min: 0, max: 600_000 }).describe(
    'how long a call waits for the end of a run before it answers "running"; many clients give up after 60 s',
  ),
  ...WorkbenchSettings.shape,
  bodyLimitBytes: whole(16 * MiB, { min: 1024 }).describe('largest request body of /mcp'),
  snippetsDir: z
    .string()
    .min(1)
    .optional()
    .describe('where saved snippets are kept; otherwise ~/.bun-runner-mcp/snippets'),
});
export type McpConfig = z.infer<typeof McpConfig>;
