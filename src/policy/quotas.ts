import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';

/** What all sessions of one tenant may hold together. What is not given has no bound but that of the host. */
export const Quotas = z.strictObject({
  sessions: z.int().min(0).optional().describe('sessions at once; 0: none'),
  cpus: z.number().min(0).optional().describe('CPU cores of all its sessions together, fractions allowed'),
  memoryBytes: z.int().min(0).optional().describe('memory of all its sessions together'),
  diskBytes: z.int().min(0).optional().describe('disk of all its sessions together'),
});
export type Quotas = z.infer<typeof Quotas>;

/** What one session holds: its limits, whether it uses them or not. */
export interface Holding {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly diskBytes: number;
}

const MiB = 1024 * 1024;

interface Measure {
  readonly of: (holding: Holding) => number;
  readonly show: (amount: number) => string;
}

const MEASURES: Readonly<Record<keyof Quotas, Measure>> = {
  sessions: { of: () => 1, show: (amount) => `${amount} sessions` },
  cpus: { of: ({ cpus }) => cpus, show: (amount) => `${amount} CPUs` },
  memoryBytes: { of: ({ memoryBytes }) => memoryBytes, show: (amount) => `${toMiB(amount)} MiB of memory` },
  diskBytes: { of: ({ diskBytes }) => diskBytes, show: (amount) => `${toMiB(amount)} MiB of disk` },
};

/** Throws unless one more session fits beside those that the tenant has. */
export function requireQuota(
  tenant: { readonly name: string; readonly quotas: Quotas },
  inUse: readonly Holding[],
  asked: Holding,
): void {
  const problems: string[] = [];
  let fitsAlone = true;
  for (const name of Quotas.keyof().options) {
    const granted = tenant.quotas[name];
    if (granted === undefined) continue;
    const { of, show } = MEASURES[name];
    const used = exact(inUse.reduce((sum, holding) => sum + of(holding), 0));
    if (exact(used + of(asked)) <= granted) continue;
    fitsAlone &&= of(asked) <= granted;
    problems.push(`${show(used)} of ${show(granted)} are in use, and ${show(of(asked))} more are asked for`);
  }
  if (problems.length === 0) return;
  throw new HotcellError(
    'QUOTA_EXCEEDED',
    `the quota of tenant ${tenant.name} is exceeded: ${problems.join('; ')}`,
    fitsAlone ? {} : { hint: 'Ask for less: this is more than the whole quota.' },
  );
}

/** Ten sessions of 0.1 CPU use one CPU, not 0.9999999999999999. */
function exact(amount: number): number {
  return Math.round(amount * 1e6) / 1e6;
}

function toMiB(bytes: number): number {
  return Math.round((bytes / MiB) * 100) / 100;
}
