import { toPrintable } from './printable.ts';

const USUAL_LENGTH = 60;

/** SECURITY: what tasks, workers and files are called, and what they said, was chosen by others. It stays one line. */
export function oneLine(text: string, longest = USUAL_LENGTH): string {
  const line = toPrintable(text.replaceAll(/\s+/g, ' ').trim());
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}
