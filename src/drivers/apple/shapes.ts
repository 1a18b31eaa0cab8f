import * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import { parseJson } from '../../lib/parse-json.ts';

/** As much of the CLI's JSON as we use; it has more, and other versions have other things beside. */

const Version = z.object({ text: z.string(), parts: z.tuple([z.int(), z.int(), z.int()]) });
export type CliVersion = z.infer<typeof Version>;

/** `container CLI version 1.2.2 (build: release, commit: 0190097)`; undefined for the words of another program. */
export function parseVersion(stdout: string): CliVersion | undefined {
  const match = /^container CLI version ((\d+)\.(\d+)\.(\d+)\S*) \(build: \w+, commit: \S+?(, .*)?\)$/m.exec(
    stdout,
  );
  if (match === null) return undefined;
  const [, text = '', ...digits] = match;
  return Version.parse({ text, parts: digits.slice(0, 3).map(Number) });
}

export function isAtLeast(
  { parts }: CliVersion,
  [major, minor, patch]: readonly [number, number, number],
): boolean {
  if (parts[0] !== major) return parts[0] > major;
  return parts[1] === minor ? parts[2] >= patch : parts[1] > minor;
}

/** Flat up to 1.3, nested from 1.4 on; this much is the same. */
const Status = z.object({ status: z.string() });

export function parseStatus(stdout: string): string | undefined {
  const status = Status.safeParse(parseJson(stdout));
  return status.success ? status.data.status : undefined;
}

const Container = z.object({
  id: z.string().min(1),
  configuration: z.object({ labels: z.record(z.string(), z.string()).default({}) }),
  status: z.object({ state: z.enum(['unknown', 'stopped', 'running', 'stopping']) }),
});
export type ListedContainer = z.infer<typeof Container>;

export function parseContainers(stdout: string): ListedContainer[] {
  return parseAs(z.array(Container), stdout, 'list');
}

const Image = z.object({
  id: z.string(),
  configuration: z.object({ creationDate: z.string().default(''), name: z.string() }),
  variants: z
    .array(
      z.object({
        config: z.object({
          config: z.object({ Labels: z.record(z.string(), z.string()).optional() }).optional(),
        }),
        platform: z.object({ architecture: z.string(), os: z.string() }),
        size: z.number(),
      }),
    )
    .default([]),
});
export type InspectedImage = z.infer<typeof Image>;

export function parseImages(stdout: string): InspectedImage[] {
  return parseAs(z.array(Image), stdout, 'image inspect');
}

/** What is not known is left out. */
const Stats = z.object({
  id: z.string(),
  cpuUsageUsec: z.number().optional(),
  memoryUsageBytes: z.number().optional(),
  numProcesses: z.number().optional(),
});

export function parseStats(stdout: string): z.infer<typeof Stats>[] {
  return parseAs(z.array(Stats), stdout, 'stats');
}

function parseAs<T>(schema: z.ZodType<T>, stdout: string, call: string): T {
  const parsed = schema.safeParse(parseJson(stdout));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new HotcellError(
    'DRIVER_UNAVAILABLE',
    `\`container ${call}\` answers in a form that is not known: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`,
    { hint: 'Use a version of container that this driver knows; `hotcell doctor` names them.' },
  );
}
