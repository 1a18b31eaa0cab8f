import { open, readdir, stat, type FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { workerLogFile, type FleetPaths } from '../names.ts';
import { endOfLines, linesBackward, linesForward } from './file-lines.ts';
import { matchesFilter, timeOf, type LogFilter } from './log-filter.ts';
import { parseLogLine, type LogLine } from './log-line.ts';

const FILE = /^worker-(\d+)\.jsonl$/;
const LOOK_EVERY_MS = 200;

export interface LogWish extends LogFilter {
  /** Only of this one. */
  readonly worker?: number | undefined;
  /** As many of the last lines that match; Infinity for all of them. */
  readonly tail: number;
  /** Go on with what is written from now on, until `signal` aborts. */
  readonly follow?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A log file that is being read, and how far. An open file stays the same one, whatever happens to its name. */
interface Position {
  readonly file: FileHandle;
  readonly inode: number;
  offset: number;
}

/** Lines of all workers, or of one, in the order of their times. */
export async function* readLogs(paths: FleetPaths, wish: LogWish): AsyncGenerator<LogLine> {
  const positions = new Map<number, Position>();
  try {
    const workers = await listWorkerLogs(paths.workerLogs, wish.worker);
    for (const worker of workers) {
      const position = await openLog(workerLogFile(paths, worker));
      if (position !== undefined) positions.set(worker, position);
    }
    const kept = workers.map((worker) => ({
      path: workerLogFile(paths, worker),
      newest: positions.get(worker),
    }));
    if (wish.tail === Infinity) yield* mergeByTime(kept.map((log) => readWhole(log, wish)));
    else yield* await readTails(kept, wish);
    while (wish.follow === true && (await pause(wish.signal))) {
      yield* await readNews(paths, positions, wish);
    }
  } finally {
    for (const { file } of positions.values()) await file.close();
  }
}

/** Numbers of the workers that have a log, or had one before it was rotated. */
async function listWorkerLogs(folder: string, only: number | undefined): Promise<number[]> {
  const names = await readdir(folder).catch(() => []);
  const numbers = names.flatMap((name) => {
    const number = FILE.exec(name.replace(/\.1$/, ''))?.[1];
    return number === undefined ? [] : [Number(number)];
  });
  return [...new Set(numbers)]
    .filter((worker) => only === undefined || worker === only)
    .toSorted((one, other) => one - other);
}

/** Undefined when there is no such file. */
async function openLog(path: string, at: 'start' | 'end' = 'end'): Promise<Position | undefined> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return undefined;
  const { size, ino } = await file.stat();
  return { file, inode: ino, offset: at === 'start' ? 0 : await endOfLines(file, size) };
}

/** The log of one worker: what is being written, at its end, and perhaps one before it. */
interface KeptLog {
  readonly path: string;
  readonly newest: Position | undefined;
}

async function readTails(logs: readonly KeptLog[], wish: LogWish): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for (const log of logs) found.push(...(await readTail(log, wish)));
  return wish.tail === 0 ? [] : byTime(found).slice(-wish.tail);
}

/** Backwards, so that the end of a huge file costs as much as that of a small one. */
async function readTail({ path, newest }: KeptLog, wish: LogWish): Promise<LogLine[]> {
  const found: LogLine[] = [];
  const collect = async (position: Position | undefined): Promise<void> => {
    if (position === undefined || found.length >= wish.tail) return;
    for await (const text of linesBackward(position.file, position.offset)) {
      const line = parseLogLine(text);
      if (line === undefined) continue;
      // Times only grow within a file: nothing before this line can match.
      if (wish.since !== undefined && timeOf(line) < wish.since.getTime()) return;
      if (matchesFilter(line, wish)) found.push(line);
      if (found.length >= wish.tail || wish.signal?.aborted === true) return;
    }
  };
  await collect(newest);
  await using rotated = await openRotated(path, newest);
  await collect(rotated.position);
  return found.toReversed();
}

/** From the beginning, line by line. */
async function* readWhole({ path, newest }: KeptLog, wish: LogWish): AsyncGenerator<LogLine> {
  await using rotated = await openRotated(path, newest);
  for (const position of [rotated.position, newest]) {
    if (position === undefined) continue;
    for await (const { line } of linesForward(position.file, { from: 0, to: position.offset })) {
      const parsed = parseLogLine(line);
      if (wish.signal?.aborted === true) return;
      if (parsed !== undefined && matchesFilter(parsed, wish)) yield parsed;
    }
  }
}

async function openRotated(
  path: string,
  newest: Position | undefined,
): Promise<AsyncDisposable & { readonly position: Position | undefined }> {
  const rotated = await openLog(`${path}.1`);
  // Rotated between the two looks: then it is the one that is open already.
  const isSame = rotated !== undefined && rotated.inode === newest?.inode;
  return {
    position: isSame ? undefined : rotated,
    [Symbol.asyncDispose]: async () => rotated?.file.close(),
  };
}

/** The earliest of the next lines, again and again: each source is in order. */
async function* mergeByTime(sources: readonly AsyncGenerator<LogLine>[]): AsyncGenerator<LogLine> {
  const heads: { line: LogLine; source: AsyncGenerator<LogLine> }[] = [];
  const advance = async (source: AsyncGenerator<LogLine>): Promise<void> => {
    const next = await source.next();
    if (next.done !== true) heads.push({ line: next.value, source });
  };
  try {
    for (const source of sources) await advance(source);
    while (heads.length > 0) {
      heads.sort((one, other) => timeOf(one.line) - timeOf(other.line));
      const first = heads.shift();
      if (first === undefined) return;
      yield first.line;
      await advance(first.source);
    }
  } finally {
    for (const source of sources) await source.return(undefined);
  }
}

/** What was added since the last look, of files that appeared since then all of it. */
async function readNews(
  paths: FleetPaths,
  positions: Map<number, Position>,
  wish: LogWish,
): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for (const worker of await listWorkerLogs(paths.workerLogs, wish.worker)) {
    const path = workerLogFile(paths, worker);
    const known = positions.get(worker);
    const inode = (await stat(path).catch(() => undefined))?.ino;
    const news = known === undefined ? [] : await readOn(known, wish);
    found.push(...news);
    // Rotated: first everything of the old one, which has its new name since before this look.
    if (inode === undefined || inode === known?.inode || news.length > 0) continue;
    const file = await openLog(path, 'start');
    if (file === undefined) continue;
    positions.set(worker, file);
    await known?.file.close();
    found.push(...(await readOn(file, wish)));
  }
  return byTime(found);
}

async function readOn(position: Position, wish: LogWish): Promise<LogLine[]> {
  const { size } = await position.file.stat();
  // Emptied by somebody: it begins again.
  if (size < position.offset) position.offset = 0;
  const found: LogLine[] = [];
  for await (const { line, next } of linesForward(position.file, { from: position.offset, to: size })) {
    position.offset = next;
    const parsed = parseLogLine(line);
    if (parsed !== undefined && matchesFilter(parsed, wish)) found.push(parsed);
    if (found.length >= MOST_AT_ONCE) break;
  }
  return found;
}

/** The rest comes with the next look. */
const MOST_AT_ONCE = 10_000;

/** Lines of one moment stay in the order in which they were found. */
function byTime(lines: readonly LogLine[]): LogLine[] {
  return lines.toSorted((one, other) => timeOf(one) - timeOf(other));
}

/** False when nobody wants to hear more. */
async function pause(signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await sleep(LOOK_EVERY_MS, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
