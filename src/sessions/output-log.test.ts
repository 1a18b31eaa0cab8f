import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { OutputLog } from './output-log.ts';
import type { OutputPiece, OutputStream } from './output-records.ts';

const KiB = 1024;
const NEVER = new AbortController().signal;
const ROOMY = { headBytes: 1024 * KiB, tailBytes: 1024 * KiB };

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'hotcell-output-')), 'log');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true }));

/** Numbers that look random and are the same in every run. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    yield state >>> 8;
  }
}

/** All that was ever said, to compare with. */
class Said {
  readonly #parts: { stream: OutputStream; bytes: Buffer }[] = [];
  readonly #streams: Uint8Array[] = [];
  total = 0;

  add(stream: OutputStream, bytes: Buffer): void {
    this.#parts.push({ stream, bytes });
    this.#streams.push(new Uint8Array(bytes.length).fill(stream === 'stderr' ? 1 : 0));
    this.total += bytes.length;
  }

  /** Every byte from `from` on is delivered exactly or declared cut, in order, once. */
  check(pieces: readonly OutputPiece[], from: number): { cut: number } {
    const bytes = Buffer.concat(this.#parts.map((part) => part.bytes));
    const streams = Buffer.concat(this.#streams);
    let at = from;
    let cut = 0;
    for (const piece of pieces) {
      expect(piece.from).toBe(at);
      if (piece.type === 'cut') {
        expect(piece.to).toBeGreaterThan(piece.from);
        cut += piece.to - piece.from;
        at = piece.to;
        continue;
      }
      expect(piece.bytes.length).toBeGreaterThan(0);
      const end = at + piece.bytes.length;
      expect(Buffer.compare(piece.bytes, bytes.subarray(at, end))).toBe(0);
      const mark = piece.type === 'stderr' ? 1 : 0;
      expect(streams.subarray(at, end).every((byte) => byte === mark)).toBe(true);
      at = end;
    }
    expect(at).toBe(Math.max(from, this.total));
    return { cut };
  }
}

async function readAll(log: OutputLog, from = 0): Promise<OutputPiece[]> {
  const pieces: OutputPiece[] = [];
  for await (const piece of log.read(from, Infinity)) pieces.push(piece);
  return pieces;
}

/** Segments are removed in the background, also between a look at the folder and one at its files. */
const diskBytesOf = (path: string): number =>
  readdirSync(path).reduce(
    (sum, name) => sum + (statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );

describe('an output log', () => {
  test('[RS-06] keeps bytes, streams and their order', async () => {
    const log = OutputLog.create(folder, ROOMY);
    await log.append('stdout', Buffer.from('one\0\r\n'));
    await log.append('stderr', Buffer.from([0xff, 0xfe]));
    await log.append('stdout', Buffer.from('two'));
    expect([log.bytes, log.stderrBytes]).toEqual([11, 2]);
    expect(await readAll(log)).toEqual([
      { type: 'stdout', from: 0, bytes: Buffer.from('one\0\r\n') },
      { type: 'stderr', from: 6, bytes: Buffer.from([0xff, 0xfe]) },
      { type: 'stdout', from: 8, bytes: Buffer.from('two') },
    ]);
    expect(await readAll(log, 7)).toMatchObject([{ type: 'stderr', from: 7 }, { from: 8 }]);
    log.finish();
  });

  test('[RS-02] makes nothing on disk for a command that prints nothing', () => {
    const log = OutputLog.create(folder, ROOMY);
    log.finish();
    expect(readdirSync(join(folder, '..'))).toEqual([]);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    '[RS-06] delivers every byte exactly or declares it cut, whatever is written and read (%i)',
    async (seed) => {
      const random = numbers(seed);
      const bounds = { headBytes: 64 * KiB, tailBytes: (64 + (random.next().value % 200)) * KiB };
      const said = new Said();
      let log = OutputLog.create(folder, bounds);
      const sizes = [1, 3, 100, 5000, 70_000, 200_000];
      const slow = follow(log, { turns: 20 });
      const quick = follow(log, { from: 1000 });
      let cut = 0;
      for (let step = 0; step < 120; step++) {
        const stream = random.next().value % 3 === 0 ? 'stderr' : 'stdout';
        const size = 1 + (random.next().value % (sizes[random.next().value % sizes.length] ?? 1));
        const bytes = Buffer.alloc(size, random.next().value % 256);
        said.add(stream, bytes);
        await log.append(stream, bytes);
        const from = random.next().value % (said.total + 1);
        if (step % 10 === 0) cut += said.check(await readAll(log, from), from).cut;
        expect(log.diskBytes).toBeLessThanOrEqual(bounds.headBytes + bounds.tailBytes);
        expect(diskBytesOf(folder)).toBeLessThanOrEqual(bounds.headBytes + bounds.tailBytes + 130 * KiB);
      }
      log.finish();
      said.check(await slow, 0);
      said.check(await quick, 1000);
      expect(said.total).toBeGreaterThan(bounds.headBytes + bounds.tailBytes);
      const again = await OutputLog.reopen(folder, bounds);
      expect([again.bytes, again.stderrBytes]).toEqual([log.bytes, log.stderrBytes]);
      log = again;
      cut += said.check(await readAll(log), 0).cut;
      expect(cut).toBeGreaterThan(0);
    },
  );

  test('[RS-06] the beginning and the end stay, and only the middle goes', async () => {
    const log = OutputLog.create(folder, { headBytes: 128 * KiB, tailBytes: 256 * KiB });
    const chunk = Buffer.alloc(16 * KiB, 'x');
    for (let count = 0; count < 200; count++) await log.append('stdout', chunk);
    const cuts = (await readAll(log)).filter((piece) => piece.type === 'cut');
    expect(cuts).toHaveLength(1);
    const { from, to } = cuts[0] ?? { from: 0, to: 0 };
    expect(from).toBeGreaterThanOrEqual(127 * KiB);
    expect(log.bytes - to).toBeGreaterThan(128 * KiB);
    expect(log.bytes - to).toBeLessThanOrEqual(256 * KiB);
  });

  test('[RS-06] single bytes do not make it larger than its bounds', async () => {
    const bounds = { headBytes: 64 * KiB, tailBytes: 64 * KiB };
    const log = OutputLog.create(folder, bounds);
    const said = new Said();
    for (let count = 0; count < 60_000; count++) {
      const bytes = Buffer.from([count % 251]);
      const stream = count % 2 === 0 ? 'stdout' : 'stderr';
      said.add(stream, bytes);
      await log.append(stream, bytes);
    }
    expect(diskBytesOf(folder)).toBeLessThanOrEqual(bounds.headBytes + bounds.tailBytes + KiB);
    expect(said.check(await readAll(log), 0).cut).toBeGreaterThan(0);
  });

  test('[RS-06] a record that was torn by a crash is cut off, and the log goes on', async () => {
    const log = OutputLog.create(folder, ROOMY);
    await log.append('stdout', Buffer.from('whole'));
    await log.append('stderr', Buffer.from('torn'));
    log.close();
    const [name = ''] = readdirSync(folder);
    for (const [length, left] of [
      [11, 5],
      [10, 5],
      [9, 0],
      [2, 0],
    ] as const) {
      truncateSync(join(folder, name), length);
      const reopened = await OutputLog.reopen(folder, ROOMY);
      expect([reopened.bytes, reopened.stderrBytes, diskBytesOf(folder)]).toEqual([
        left,
        0,
        left === 0 ? 0 : 10,
      ]);
    }
    const again = await OutputLog.reopen(folder, ROOMY);
    await again.append('stdout', Buffer.from('more'));
    expect(await readAll(again)).toEqual([{ type: 'stdout', from: 0, bytes: Buffer.from('more') }]);
    appendFileSync(join(folder, name), Buffer.from([9, 9, 9, 9, 9, 9, 9, 9]));
    expect((await OutputLog.reopen(folder, ROOMY)).bytes).toBe(4);
  });

  test('[RS-05] readers wake up with output, end with the log, with their signal, and with the server', async () => {
    const log = OutputLog.create(folder, ROOMY);
    const leaving = new AbortController();
    const all = follow(log);
    const left = follow(log, { signal: leaving.signal });
    await log.append('stdout', Buffer.from('a'));
    leaving.abort();
    expect((await left).length).toBeLessThanOrEqual(1);
    await log.append('stdout', Buffer.from('b'));
    log.finish();
    expect(Buffer.concat((await all).map((piece) => ('bytes' in piece ? piece.bytes : Buffer.of())))).toEqual(
      Buffer.from('ab'),
    );
    const other = OutputLog.create(`${folder}-2`, ROOMY);
    const waiting = follow(other);
    other.close();
    expect(await waiting).toEqual([]);
  });

  test('[RS-06] what is removed is declared cut to those who still read', async () => {
    const log = OutputLog.create(folder, ROOMY);
    await log.append('stdout', Buffer.alloc(300 * KiB));
    const reader = log.follow(0, NEVER);
    expect((await reader.next()).value).toMatchObject({ from: 0 });
    await log.remove();
    const rest: OutputPiece[] = [];
    for await (const piece of reader) rest.push(piece);
    const last = rest.at(-1);
    expect(last?.type === 'cut' ? last.to : (last?.from ?? 0) + (last?.bytes.length ?? 0)).toBe(300 * KiB);
    expect(await readAll(log)).toEqual([{ type: 'cut', from: 0, to: 300 * KiB }]);
    expect(readdirSync(join(folder, '..'))).toEqual([]);
  });

  test('[RS-06] a disk that refuses is an error, once and ever after', async () => {
    const log = OutputLog.create('/dev/null/log', ROOMY);
    await expect(log.append('stdout', Buffer.from('x'))).rejects.toThrow('ENOTDIR');
    await expect(log.append('stdout', Buffer.from('x'))).rejects.toThrow('earlier');
    expect(log.bytes).toBe(0);
  });

  test('[RS-06] a flood with a slow reader does not grow memory', async () => {
    const log = OutputLog.create(folder, { headBytes: 1024 * KiB, tailBytes: 4096 * KiB });
    const chunk = Buffer.alloc(64 * KiB, 'flood');
    const leaving = new AbortController();
    const reader = follow(log, { turns: 50, signal: leaving.signal, keep: false });
    for (let count = 0; count < 200; count++) await log.append('stdout', chunk);
    const before = process.memoryUsage().rss;
    let peak = 0;
    for (let count = 0; count < 6000; count++) {
      await log.append('stdout', chunk);
      if (count % 100 === 0) peak = Math.max(peak, process.memoryUsage().rss);
    }
    leaving.abort();
    await reader;
    expect(log.bytes).toBe(6200 * 64 * KiB);
    expect(peak - before).toBeLessThan(64 * 1024 * KiB);
  });
});

interface FollowOptions {
  from: number;
  turns: number;
  signal: AbortSignal;
  keep: boolean;
}

/** Reads to the end, with a pause of some turns of the event loop after each piece. */
async function follow(
  log: OutputLog,
  { from = 0, turns = 0, signal = NEVER, keep = true }: Partial<FollowOptions> = {},
): Promise<OutputPiece[]> {
  const pieces: OutputPiece[] = [];
  for await (const piece of log.follow(from, signal)) {
    // A copy: what a reader got stays as it is.
    if (keep) pieces.push('bytes' in piece ? { ...piece, bytes: Uint8Array.from(piece.bytes) } : piece);
    for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  return pieces;
}

test('[RS-22] [SC-02] what was acknowledged before a kill -9 is there after it, at whatever moment it comes', async () => {
  const program = `
    import { OutputLog } from ${JSON.stringify(fileURLToPath(new URL('./output-log.ts', import.meta.url)))};
    const [, folder] = process.argv;
    const log = await OutputLog.reopen(folder, { headBytes: 65536, tailBytes: 262144 });
    for (let count = 0; ; count++) {
      const bytes = Buffer.alloc(1 + (count * 7919) % 30000);
      for (let at = 0; at < bytes.length; at++) bytes[at] = (log.bytes + at) % 251;
      await log.append(count % 5 === 0 ? 'stderr' : 'stdout', bytes);
      process.stdout.write(log.bytes + '\\n');
    }`;
  let known = 0;
  for (let round = 0; round < 6; round++) {
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    const ended = once(child, 'close');
    for await (const chunk of child.stdout) {
      said += String(chunk);
      if (said.split('\n').length > 30 + round * 40) child.kill('SIGKILL');
    }
    expect(await ended).toEqual([null, 'SIGKILL']);
    const acknowledged = Number(said.split('\n').at(-2));
    expect(acknowledged).toBeGreaterThan(known);
    const log = await OutputLog.reopen(folder, { headBytes: 65_536, tailBytes: 262_144 });
    expect(log.bytes).toBeGreaterThanOrEqual(acknowledged);
    let at = 0;
    for (const piece of await readAll(log)) {
      expect(piece.from).toBe(at);
      const start = at;
      const bytes = piece.type === 'cut' ? Buffer.of() : piece.bytes;
      expect(bytes.every((byte, index) => byte === (start + index) % 251)).toBe(true);
      at = piece.type === 'cut' ? piece.to : start + bytes.length;
    }
    expect(at).toBe(log.bytes);
    known = log.bytes;
  }
});
