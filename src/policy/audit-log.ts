import type { Log } from '../core/log.ts';
import { messageOf } from '../core/errors.ts';
import { toAuditLine } from './audit-entry.ts';
import type { AuditEntry } from './audit-entry.ts';
import { RotatingFile } from './rotating-file.ts';
import type { RotatingFileOptions } from './rotating-file.ts';

/** Characters of lines that may wait for a slow disk. */
const MOST_WAITING = 8 * 1024 * 1024;
/** Lines that are written with one call. */
const MOST_AT_ONCE = 256;

/** The time of day, which core's clock does not tell. */
export interface WallClock {
  wallTimeMs(): number;
}

export const SYSTEM_WALL_CLOCK: WallClock = { wallTimeMs: () => Date.now() };

export interface AuditLogParts extends RotatingFileOptions {
  readonly log: Log;
  readonly clock: WallClock;
}

/**
 * Who ran what when, as JSON lines on disk, in the order of the calls. A request neither waits for the disk nor fails with
 * it: entries that could not be written are counted, and the log is told when that begins and when it is over.
 */
export class AuditLog implements AsyncDisposable {
  readonly #parts: AuditLogParts;
  readonly #file: RotatingFile;
  #waiting: string[] = [];
  #waitingLength = 0;
  #isWriting = false;
  /** The lines that are being written now. */
  #round = Promise.resolve();
  #accepted = 0;
  #settled = 0;
  #failures = 0;
  /** Failures before the present trouble, while there is one. */
  #failuresBefore: number | undefined;
  #isClosed = false;

  constructor(parts: AuditLogParts) {
    this.#parts = parts;
    this.#file = new RotatingFile(parts);
  }

  /** Entries that are not on disk and never will be. */
  get failures(): number {
    return this.#failures;
  }

  append(entry: AuditEntry): void {
    if (this.#isClosed) this.#fail(1, 'the audit log is closed');
    else if (this.#waitingLength >= MOST_WAITING) this.#fail(1, 'the disk is too slow');
    else {
      const line = toAuditLine(entry, this.#parts.clock.wallTimeMs());
      this.#waiting.push(line);
      this.#waitingLength += line.length;
      this.#accepted++;
      if (!this.#isWriting) void this.#writeAll();
    }
  }

  /** Waits until everything appended so far is in the file, or counted as failed. */
  async flush(): Promise<void> {
    const target = this.#accepted;
    while (this.#settled < target) await this.#round;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    await this.#file.close().catch((error: unknown) => this.#fail(0, messageOf(error)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #writeAll(): Promise<void> {
    this.#isWriting = true;
    // What is appended in the same turn goes to disk with one call.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const lines = this.#waiting;
      this.#waiting = [];
      this.#waitingLength = 0;
      this.#round = this.#write(lines);
      await this.#round;
      this.#settled += lines.length;
    }
    this.#isWriting = false;
  }

  async #write(lines: readonly string[]): Promise<void> {
    let at = 0;
    while (at < lines.length) {
      const batch = lines.slice(at, at + MOST_AT_ONCE);
      try {
        at += await this.#file.write(batch);
        this.#recover();
      } catch (error) {
        at += batch.length;
        this.#fail(batch.length, messageOf(error));
      }
    }
  }

  #fail(count: number, reason: string): void {
    const { log, file } = this.#parts;
    if (this.#failuresBefore === undefined) {
      this.#failuresBefore = this.#failures;
      log.error({ file, reason }, 'audit log unwritable');
    }
    this.#failures += count;
  }

  #recover(): void {
    if (this.#failuresBefore === undefined) return;
    const lost = this.#failures - this.#failuresBefore;
    this.#failuresBefore = undefined;
    this.#parts.log.warn({ file: this.#parts.file, lost }, 'audit log writable again');
  }
}
