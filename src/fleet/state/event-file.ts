import { appendFileSync, closeSync, fstatSync, openSync, readSync } from 'node:fs';
import type { LogEntry } from '../fleet-state.ts';
import { parseJson } from '../../lib/parse-json.ts';

const CHUNK = 64 * 1024;

/** `<feature>-events.jsonl`: every event once, in order, also when a process died between state and file. */
export class EventFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Number of the last event that is in it whole; 0 when there is none with a number. */
  lastNumber(): number {
    return this.#readEnd().number;
  }

  append(entries: readonly LogEntry[]): void {
    if (entries.length === 0) return;
    // A line that was cut short by a crash must not swallow the next one.
    const first = this.#readEnd().isWhole ? '' : '\n';
    appendFileSync(this.#path, first + entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''), {
      mode: 0o644,
    });
  }

  #readEnd(): { number: number; isWhole: boolean } {
    let file: number;
    try {
      file = openSync(this.#path, 'r');
    } catch {
      return { number: 0, isWhole: true };
    }
    try {
      const { size } = fstatSync(file);
      for (let length = CHUNK; ; length *= 4) {
        const start = Math.max(0, size - length);
        const buffer = Buffer.alloc(size - start);
        const read = readSync(file, buffer, 0, buffer.length, start);
        const text = buffer.toString('utf8', 0, read);
        const lines = text.split('\n');
        const isWhole = (lines.pop() ?? '') === '';
        // The first piece may be the end of a line.
        if (start > 0) lines.shift();
        const number = lines.map(numberOf).findLast((found) => found !== undefined);
        if (number !== undefined || start === 0) return { number: number ?? 0, isWhole };
      }
    } finally {
      closeSync(file);
    }
  }
}

function numberOf(line: string): number | undefined {
  const entry = parseJson(line);
  return typeof entry === 'object' && entry !== null && 'seq' in entry && typeof entry.seq === 'number'
    ? entry.seq
    : undefined;
}
