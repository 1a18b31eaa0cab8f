import { isOrphan, toOwnerLabels, type LabelWriting, type Labels } from '../engine/owner-labels.ts';

const NAME = 'hotcell.name';
const KIND = 'hotcell.kind';

/** The value of a label cannot have an equal sign; in this writing nothing has. */
const BASE64: LabelWriting = {
  write: (record) => Buffer.from(record).toString('base64url'),
  read: (value) => Buffer.from(value, 'base64url').toString(),
};

export function toAppleLabels(instance: string): Promise<Labels> {
  return toOwnerLabels(instance, BASE64);
}

export function isAppleOrphan(labels: Labels): Promise<boolean> {
  return isOrphan(labels, BASE64);
}

export function toCellLabels(owner: Labels, cell: { readonly name: string; readonly kind: string }): Labels {
  return { ...owner, [NAME]: cell.name.replaceAll('=', '-'), [KIND]: cell.kind };
}

export function toLabelWords(labels: Labels): string[] {
  return Object.entries(labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
}
