import { randomBytes } from 'node:crypto';

const STEM_LENGTH = 48;
const RANDOM_BYTES = 6;

/**
 * The name of a cell is its id in the CLI, so it must be like no other. SECURITY: whoever has the same one already would be
 * removed in place of our cell, so it has more digits than anybody meets by accident.
 */
export function toContainerId(name: string): string {
  const stem = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, STEM_LENGTH);
  return `${stem === '' ? 'cell' : stem}-${randomBytes(RANDOM_BYTES).toString('hex')}`;
}
