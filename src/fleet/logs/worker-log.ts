import { closeSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { workerLogFile, type FleetPaths } from '../names.ts';
import { withFileLock } from '../state/file-lock.ts';
import { isAtLeast, type LogLevel, type LogLine, type LogPhase } from './log-line.ts';

/** Longer texts are cut; whole outputs belong to the artifacts of the task. */
const LONGEST_TEXT = 16_000;
const USUAL_MAX_BYTES = 50 * 1024 ** 2;

export interface LogFields {
  readonly task_id?: string;
  readonly phase?: LogPhase;
  readonly event?: string;
  readonly duration_ms?: number;
  readonly data?: Record<string, unknown>;
}

interface Options {
  /** Instead of the number, for what is no worker. */
  readonly name?: string;
  /** Lines below it are not written. */
  readonly level?: LogLevel;
  /** A file that has become larger becomes `.jsonl.1`. */
  readonly maxBytes?: number;
  readonly now?: () => Date;
}

/**
 * The log of one worker, written on the host alone, line by line. A message is what one greps for: a noun and what became of
 * it. All else is a field.
 * SECURITY: never pass values of variables. Text that a cell chose goes into `data`, where JSON keeps it one line; whoever
 * prints it makes it printable.
 */
export class WorkerLog {
  readonly file: string;
  readonly #feature: string;
  readonly #worker: number | string;
  readonly #level: LogLevel;
  readonly #maxBytes: number;
  readonly #now: () => Date;
  /** Hears of every line that is written. */
  onLine: ((line: LogLine) => void) | undefined;

  constructor(paths: FleetPaths, worker: number, options: Options = {}) {
    this.file = workerLogFile(paths, worker);
    this.#feature = paths.feature;
    this.#worker = options.name ?? worker;
    this.#level = options.level ?? 'info';
    this.#maxBytes = options.maxBytes ?? USUAL_MAX_BYTES;
    this.#now = options.now ?? (() => new Date());
    mkdirSync(dirname(this.file), { recursive: true });
  }

  /** The line as it was written, for the log of the task; undefined below the level. */
  write(level: LogLevel, message: string, fields: LogFields = {}): LogLine | undefined {
    if (!isAtLeast(level, this.#level)) return undefined;
    const line: LogLine = {
      ts: this.#now().toISOString(),
      level,
      worker_id: this.#worker,
      feature: this.#feature,
      message,
      ...fields,
      ...(fields.data === undefined ? {} : { data: withCuts(fields.data) }),
    };
    appendLine(this.file, line);
    this.onLine?.(line);
    if (sizeOf(this.file) > this.#maxBytes) this.#rotate();
    return line;
  }

  info(message: string, fields?: LogFields): LogLine | undefined {
    return this.write('info', message, fields);
  }

  warn(message: string, fields?: LogFields): LogLine | undefined {
    return this.write('warn', message, fields);
  }

  error(message: string, fields?: LogFields): LogLine | undefined {
    return this.write('error', message, fields);
  }

  /** Features share the file of a worker number, hence the lock. */
  #rotate(): void {
    withFileLock(join(dirname(this.file), '.rotation.lock'), () => {
      if (sizeOf(this.file) > this.#maxBytes) renameSync(this.file, `${this.file}.1`);
    });
  }
}

function withCuts(data: Record<string, unknown>): Record<string, unknown> {
  const cut = (value: unknown): unknown =>
    typeof value === 'string' && value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)} […]` : value;
  return Object.fromEntries(Object.entries(data).map(([name, value]) => [name, cut(value)]));
}

/** One line in one write: a crash leaves it whole or not there. */
export function appendLine(file: string, line: object): void {
  const text = `${JSON.stringify(line)}\n`;
  const descriptor = openSync(file, 'a', 0o644);
  try {
    writeSync(descriptor, text);
  } finally {
    closeSync(descriptor);
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
