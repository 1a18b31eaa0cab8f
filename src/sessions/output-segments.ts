import { open, readdir, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { measureRecords } from './output-records.ts';

export interface OutputBounds {
  /** Disk space for the beginning. */
  readonly headBytes: number;
  /** Disk space for the end. */
  readonly tailBytes: number;
}

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

/** What a segment takes of the disk at most. */
export function toSegmentBytes({ headBytes, tailBytes }: OutputBounds): number {
  return Math.min(1024 * 1024, headBytes, Math.floor(tailBytes / 4));
}

const digits = (count: number): string => String(count).padStart(16, '0');

export function toSegmentPath(
  folder: string,
  { from, stderrBefore }: Pick<Segment, 'from' | 'stderrBefore'>,
): string {
  return join(folder, `${digits(from)}-${digits(stderrBefore)}`);
}

/**
 * The segments that a folder holds. Most end where the next one begins. Those before a possible gap (the last one of the
 * beginning, whose segments of earlier versions may be larger) and at the very end are read; what is torn at the very end is cut off.
 */
export async function measureSegments(folder: string, bounds: OutputBounds): Promise<Measured> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await measureAll(folder, bounds);
    } catch (error) {
      // A segment that was dropped may be on its way out.
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT';
      if (!isGone || attempt === ATTEMPTS) throw error;
    }
  }
}

async function measureAll(folder: string, bounds: OutputBounds): Promise<Measured> {
  const segments = await listSegments(folder);
  let before = 0;
  let stderrBytes = 0;
  for (const [index, segment] of segments.entries()) {
    const next = segments[index + 1];
    const mayEndHead =
      before < bounds.headBytes && before + segment.fileBytes + toSegmentBytes(bounds) > bounds.headBytes;
    before += segment.fileBytes;
    if (next !== undefined && !mayEndHead) {
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

async function measureFile(path: string, size: number): Promise<ReturnType<typeof measureRecords>> {
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
