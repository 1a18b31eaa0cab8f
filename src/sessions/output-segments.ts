import { open, readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { measureRecords } from './output-records.ts';

/** One file of an output log. */
export interface Segment {
  /** Of all output, the byte it begins with and the byte after its last one. */
  readonly from: number;
  to: number;
  /** Bytes of stderr before it. */
  readonly stderrBefore: number;
  /** With the headers of the records. */
  fileBytes: number;
}

interface Measured {
  readonly segments: Segment[];
  readonly stderrBytes: number;
}

const ATTEMPTS = 20;
const NAME = /^(\d{16})-(\d{16})$/;
const digits = (count: number): string => String(count).padStart(16, '0');

export function toSegmentPath(folder: string, { from, stderrBefore }: Segment): string {
  return join(folder, `${digits(from)}-${digits(stderrBefore)}`);
}

/**
 * The segments that a folder holds. Most end where the next one begins. Those before a possible gap (the last one of the
 * beginning) and at the very end are read; what is torn at the very end is cut off.
 */
export async function measureSegments(folder: string, headBytes: number): Promise<Measured> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await measureAll(folder, headBytes);
    } catch (error) {
      // A segment that was dropped may be on its way out.
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isGone || attempt === ATTEMPTS) throw error;
    }
  }
}

async function measureAll(folder: string, headBytes: number): Promise<Measured> {
  const segments = await listSegments(folder);
  let before = 0;
  let stderrBytes = 0;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    const endsHead = before < headBytes && before + segment.fileBytes >= headBytes;
    before += segment.fileBytes;
    if (next !== undefined && !endsHead) {
      segment.to = next.from;
      continue;
    }
    const path = toSegmentPath(folder, segment);
    const measured = await measureFile(path, segment.fileBytes);
    if (measured.fileBytes < segment.fileBytes) await truncate(path, measured.fileBytes);
    segment.fileBytes = measured.fileBytes;
    segment.to = segment.from + measured.bytes;
    stderrBytes = segment.stderrBefore + measured.stderr;
  }
  return { segments, stderrBytes };
}

async function listSegments(folder: string): Promise<Segment[]> {
  const names: string[] = await readdir(folder).catch(() => []);
  const segments: Segment[] = [];
  for (const name of names) {
    const parts = NAME.exec(name);
    if (parts === null) continue;
    const from = Number(parts[1]);
    const { size } = await stat(join(folder, name));
    segments.push({ from, to: from, stderrBefore: Number(parts[2]), fileBytes: size });
  }
  return segments.toSorted((one, other) => one.from - other.from);
}

async function measureFile(
  path: string,
  size: number,
): Promise<{ bytes: number; stderr: number; fileBytes: number }> {
  await using file = await open(path);
  const buffer = Buffer.allocUnsafe(size);
  let filled = 0;
  while (filled < size) {
    const { bytesRead } = await file.read(buffer, filled, size - filled, filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return measureRecords(buffer.subarray(0, filled));
}
