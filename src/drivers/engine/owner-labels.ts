import { judgeOwner, ownerRecord } from '../process/owner.ts';

/** By these we know our own things in an engine, whoever else uses it. */
const OWNER = 'hotcell.owner';
const PROCESS = 'hotcell.process';

export type Labels = Readonly<Record<string, string>>;

/** How a record is written where the value of a label cannot have every sign. */
export interface LabelWriting {
  write(record: string): string;
  read(value: string): string;
}
const AS_IT_IS: LabelWriting = { write: (record) => record, read: (value) => value };

export async function toOwnerLabels(instance: string, writing = AS_IT_IS): Promise<Labels> {
  return { [OWNER]: instance, [PROCESS]: writing.write(await ownerRecord()) };
}

/** For the engine's list calls. */
export const OURS_FILTER = { label: [OWNER] };

/** The same, for what was made with these labels only. */
export function toOwnFilter(labels: Labels): { label: string[] } {
  return { label: [`${OWNER}=${labels[OWNER] ?? ''}`] };
}

/** Was it made by this one of ours? */
export function isOf(labels: Labels, instance: string): boolean {
  return labels[OWNER] === instance && labels[PROCESS] !== undefined;
}

/** SECURITY: what has no readable record of its maker is left alone; it may be somebody else's with a similar label. */
export async function isOrphan(labels: Labels | undefined, writing = AS_IT_IS): Promise<boolean> {
  const record = labels?.[PROCESS];
  if (record === undefined || labels?.[OWNER] === undefined) return false;
  return (await judgeOwner(writing.read(record))) === 'dead';
}
