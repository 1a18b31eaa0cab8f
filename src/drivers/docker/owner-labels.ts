import { judgeOwner, ownerRecord } from '../process/owner.ts';

/** By these we know our own things in an engine, whoever else uses it. */
const OWNER = 'hotcell.owner';
const PROCESS = 'hotcell.process';

export type Labels = Readonly<Record<string, string>>;

export async function toOwnerLabels(instance: string): Promise<Labels> {
  return { [OWNER]: instance, [PROCESS]: await ownerRecord() };
}

/** For the engine's list calls. */
export const OURS_FILTER = { label: [OWNER] };

/** The same, for what was made with these labels only. */
export function toOwnFilter(labels: Labels): { label: string[] } {
  return { label: [`${OWNER}=${labels[OWNER] ?? ''}`] };
}

/** SECURITY: what has no readable record of its maker is left alone; it may be somebody else's with a similar label. */
export async function isOrphan(labels: Labels | undefined): Promise<boolean> {
  const record = labels?.[PROCESS];
  return record !== undefined && labels?.[OWNER] !== undefined && (await judgeOwner(record)) === 'dead';
}
