import type { Job } from '../core/job.ts';
import { joinBytes } from '../lib/join-bytes.ts';

/** What a bootstrap writes to stdout, once, when its interpreter has booted and waits for a job. */
export const READY_BYTE = 0x06;

/** How a bootstrap ends when it could not read the job or lay down its files; it says so in a line on stderr. */
export const BOOTSTRAP_FAILURE = { exitCode: 70, words: 'hotcell: ' };

const encoder = new TextEncoder();

/** A job as the bootstraps in `guest/` read it: fields of `<byte length>\n<bytes>`, in a fixed order. */
export function encodeJobFrame(job: Job): Uint8Array {
  const fields: Uint8Array[] = [encoder.encode(job.code)];
  const count = (items: number): void => void fields.push(encoder.encode(String(items)));
  count(job.args.length);
  for (const argument of job.args) fields.push(encoder.encode(argument));
  const variables = Object.entries(job.env);
  count(variables.length);
  for (const [name, value] of variables) fields.push(encoder.encode(`${name}=${value}`));
  count(job.files.length);
  for (const file of job.files) fields.push(encoder.encode(file.path), file.content);
  return joinBytes(fields.flatMap((field) => [encoder.encode(`${field.length}\n`), field]));
}
