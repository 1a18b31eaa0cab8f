import { listProcesses } from '../support/leftovers.ts';

/** Numbers that no other process has among its arguments: `sleep` takes them, and /proc shows them. */
const PREFIX = `9${String(process.pid).padStart(7, '0')}`;
const MARKED = new RegExp(`\\b${PREFIX}(\\d{6})\\b`, 'g');

export function toMarker(actNumber: number): string {
  return `${PREFIX}${String(actNumber % 1_000_000).padStart(6, '0')}`;
}

/** The marks of everything of this soak that runs. */
export function findMarked(): Set<string> {
  return new Set(listProcesses().flatMap((line) => line.match(MARKED) ?? []));
}

export function isMarkedAlive(marker: string): boolean {
  return findMarked().has(marker);
}
