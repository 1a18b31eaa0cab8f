import { judgeOwner, ownerRecord } from '../process/owner.ts';
import type { Labels } from '../docker/owner-labels.ts';

/** By these we know our own containers, whoever else has some. */
const OWNER = 'hotcell.owner';
const PROCESS = 'hotcell.process';
const NAME = 'hotcell.name';
const KIND = 'hotcell.kind';

export async function toOwnerLabels(instance: string): Promise<Labels> {
  // The value of a label cannot have an equal sign; in this writing nothing has.
  return { [OWNER]: instance, [PROCESS]: Buffer.from(await ownerRecord()).toString('base64url') };
}

export function toCellLabels(owner: Labels, cell: { readonly name: string; readonly kind: string }): Labels {
  return { ...owner, [NAME]: cell.name.replaceAll('=', '-'), [KIND]: cell.kind };
}

export function toLabelWords(labels: Labels): string[] {
  return Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
}

export function isOf(labels: Labels, instance: string): boolean {
  return labels[OWNER] === instance && labels[PROCESS] !== undefined;
}

/** SECURITY: what has no readable record of its maker is left alone; it may be somebody else's with a similar label. */
export async function isOrphan(labels: Labels): Promise<boolean> {
  const record = labels[PROCESS];
  if (record === undefined || labels[OWNER] === undefined) return false;
  return (await judgeOwner(Buffer.from(record, 'base64url').toString())) === 'dead';
}
