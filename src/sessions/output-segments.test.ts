import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OutputLog } from './output-log.ts';
import { toHeader } from './output-records.ts';
import { toSegmentPath } from './output-segments.ts';

const KiB = 1024;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-segments-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('[RS-06] segments that are larger than ours, of an earlier version, are read as they were written', async () => {
  const large = Buffer.alloc(60 * KiB, 'x');
  const record = Buffer.concat([toHeader('stdout', large.length), large]);
  for (const from of [0, 120 * KiB, 900 * KiB])
    writeFileSync(toSegmentPath(folder, { from, stderrBefore: 0 }), Buffer.concat([record, record]));
  const log = await OutputLog.reopen(folder, { headBytes: 128 * KiB, tailBytes: 256 * KiB });
  const read = async () => {
    const seen: unknown[] = [];
    for await (const piece of log.read(0, Infinity))
      seen.push(piece.type === 'cut' ? ['cut', piece.from, piece.to] : [piece.from, piece.bytes.length]);
    return seen;
  };
  const kept = (from: number) => [from * KiB, large.length];
  const end = [kept(900), kept(960)];
  expect(await read()).toEqual([...[0, 60, 120, 180].map(kept), ['cut', 240 * KiB, 900 * KiB], ...end]);
  await log.append('stdout', Buffer.from('more'));
  expect((await read()).slice(2)).toEqual([['cut', 120 * KiB, 900 * KiB], ...end, [1020 * KiB, 4]]);
});
