import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { HotcellError, messageOf } from '../../core/errors.ts';

const SQLITE_BUSY = 5;
const USUAL_WAIT_MS = 30_000;
/** Others look whether a lock is held by holding it together for a moment. */
const LOOK_MS = 1000;

/**
 * Runs `work` while no other process holds the lock. An SQLite file, because its locks are the kernel's: none outlives its
 * process, so that nobody ever has to guess whether a lock is stale.
 */
export function withFileLock<T>(path: string, work: () => T, waitMs = USUAL_WAIT_MS): T {
  using lock = take(path, waitMs);
  if (lock === undefined) {
    throw new HotcellError('FLEET_BUSY', `${path} was held by another process for ${waitMs} ms`, {
      hint: 'Such locks are held for moments: look for a process of mahabharatha that is stopped or hangs, and end it.',
    });
  }
  return work();
}

/**
 * Holds the lock until it is disposed of; undefined when another one has it. The kernel lets go of it when this process ends,
 * in whatever way.
 */
export function tryHoldFileLock(path: string): Disposable | undefined {
  return take(path, LOOK_MS);
}

/** Is it held right now? Does not disturb those who want to hold it. */
export function isFileLockHeld(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { timeout: 0, readOnly: true });
    db.exec('BEGIN; SELECT 1 FROM sqlite_schema; ROLLBACK');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    // Removed while we looked: with it went its holder.
    if (statSync(path, { throwIfNoEntry: false }) === undefined) return false;
    throw toLockError(error, path);
  } finally {
    db?.close();
  }
}

function take(path: string, waitMs: number): Disposable | undefined {
  const deadline = Date.now() + waitMs;
  for (;;) {
    const before = requireFile(path);
    const db = open(path, Math.max(0, deadline - Date.now()));
    if (db === undefined) return undefined;
    // A lock on a file that was removed meanwhile keeps nobody out.
    if (statSync(path, { throwIfNoEntry: false })?.ino === before)
      return { [Symbol.dispose]: () => close(db) };
    db.close();
  }
}

/** With its transaction begun, or undefined when somebody else's lasted. */
function open(path: string, waitMs: number): DatabaseSync | undefined {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path, { timeout: waitMs });
    // MEMORY: no journal beside it, for nothing is ever written.
    db.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return db;
  } catch (error) {
    db?.close();
    if (isBusy(error)) return undefined;
    throw toLockError(error, path);
  }
}

function close(db: DatabaseSync): void {
  if (db.isOpen) db.close();
}

/** Made with `wx`: closing a file that is there already would let go of every lock that this process has on it. */
function requireFile(path: string): number | undefined {
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(path, 'wx', 0o644));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST'))
      throw toLockError(error, path);
  }
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}

function toLockError(error: unknown, path: string): HotcellError {
  return new HotcellError('FLEET_STATE', `${path} cannot be used as a lock: ${messageOf(error)}`, {
    hint: 'Make the folder writable for you; remove the file if it is not one of mahabharatha.',
    cause: error,
  });
}
