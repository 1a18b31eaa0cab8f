import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { ZodError } from 'zod';
import { HotcellError, messageOf } from '../core/errors.ts';
import { ExecRows } from './exec-rows.ts';
import { SessionRows } from './session-rows.ts';

/** A store with another number was written by another version of Hotcell. */
const SCHEMA_VERSION = 1;
const SQLITE_BUSY = 5;

/**
 * Ids stand here as they are, not as hashes: listing sessions has to show them, also after a restart, and the records of
 * the cells beside them are worth as much to a thief. SECURITY: hence the folder is for the server's user alone.
 */
const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    state TEXT NOT NULL,
    facts TEXT NOT NULL,
    cell_id TEXT,
    record TEXT,
    cwd TEXT NOT NULL,
    touched_at REAL NOT NULL,
    paused_at REAL,
    allow TEXT,
    sync_index TEXT,
    ended_at REAL,
    end_reason TEXT,
    end_message TEXT
  ) STRICT;
  CREATE INDEX sessions_ended ON sessions (ended_at) WHERE state = 'ended';
  CREATE TABLE execs (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    command TEXT NOT NULL,
    variables TEXT NOT NULL,
    kind TEXT NOT NULL,
    started_at REAL NOT NULL,
    deadline REAL,
    timed_out INTEGER NOT NULL DEFAULT 0,
    number INTEGER,
    phase TEXT NOT NULL,
    output_base INTEGER NOT NULL,
    facts TEXT NOT NULL,
    result TEXT
  ) STRICT;
  CREATE INDEX execs_of ON execs (session, position);
  CREATE TABLE helpers (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    PRIMARY KEY (session, number)
  ) STRICT;
  CREATE TABLE snapshots (
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    cursor TEXT NOT NULL,
    taken_at REAL NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (session, cursor)
  ) STRICT;
`;

/** What must be known after a crash of the server: sessions, and what ran in them. */
export class SessionStore {
  readonly sessions: SessionRows;
  readonly execs: ExecRows;
  /** Twelve hex digits that name this store towards drivers: cells of other keepers are not ours. */
  readonly keeper: string;
  readonly outputFolder: string;
  /** Made just now: no server before us has left anything. */
  readonly isNew: boolean;
  readonly #db: DatabaseSync;

  private constructor(db: DatabaseSync, folder: string, isNew: boolean) {
    this.#db = db;
    this.isNew = isNew;
    this.keeper = this.#meta('keeper', () => randomBytes(6).toString('hex'));
    this.outputFolder = join(folder, 'output');
    this.sessions = new SessionRows(db);
    this.execs = new ExecRows(db);
  }

  /** Throws SESSIONS_UNAVAILABLE when another server uses the folder, or it cannot be used. */
  static open(folder: string): SessionStore {
    let db: DatabaseSync | undefined;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const file = join(folder, 'sessions.db');
      const isNew = !existsSync(file);
      db = new DatabaseSync(file, { enableForeignKeyConstraints: true });
      // EXCLUSIVE: nobody else gets in, until this process ends in whatever way. NORMAL: what is written survives the end of
      // this process, though perhaps not of the machine; the cells would not survive that either.
      db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
      prepareSchema(db, folder);
      return new SessionStore(db, folder, isNew);
    } catch (error) {
      db?.close();
      throw toStoreError(error, folder);
    }
  }

  /** All or nothing. */
  atomically(work: () => void): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      work();
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  /** Notes in which boot of the host this is; true when it is another one than last time. */
  noteBoot(bootId: string): boolean {
    const last = this.#meta('boot', () => bootId);
    this.#db.prepare('UPDATE meta SET value = ? WHERE name = ?').run(bootId, 'boot');
    return last !== bootId;
  }

  #meta(name: string, make: () => string): string {
    const value = readMeta(this.#db, name);
    if (value !== undefined) return value;
    const made = make();
    this.#db.prepare('INSERT INTO meta VALUES (?, ?)').run(name, made);
    return made;
  }

  close(): void {
    this.#db.close();
  }
}

function readMeta(db: DatabaseSync, name: string): string | undefined {
  const value = db.prepare('SELECT value FROM meta WHERE name = ?').get(name)?.['value'];
  return typeof value === 'string' ? value : undefined;
}

function prepareSchema(db: DatabaseSync, folder: string): void {
  const isNew = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() === undefined;
  if (isNew) {
    db.exec(`BEGIN EXCLUSIVE; ${SCHEMA}; INSERT INTO meta VALUES ('schema', '${SCHEMA_VERSION}'); COMMIT`);
    return;
  }
  const version = readMeta(db, 'schema');
  if (version === String(SCHEMA_VERSION)) return;
  throw new HotcellError(
    'SESSIONS_UNAVAILABLE',
    `${folder} was written by another version of Hotcell (schema ${version ?? 'unknown'}, here ${SCHEMA_VERSION})`,
    { hint: 'Use the version that wrote it, or another folder (setting sessions.dir).' },
  );
}

export function toStoreError(error: unknown, folder: string): HotcellError {
  if (error instanceof HotcellError) return error;
  if (error instanceof ZodError) {
    return new HotcellError('SESSIONS_UNAVAILABLE', `the records in ${folder} are of another version`, {
      hint: 'Start that version to end its sessions, or name another folder (setting sessions.dir).',
      cause: error,
    });
  }
  const isBusy = error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
  return isBusy
    ? new HotcellError('SESSIONS_UNAVAILABLE', `another server uses ${folder}`, {
        hint: 'Stop it, or give this one a folder of its own (setting sessions.dir).',
        cause: error,
      })
    : new HotcellError('SESSIONS_UNAVAILABLE', `${folder} cannot be used: ${messageOf(error)}`, {
        hint: 'Mend it, or name another folder (setting sessions.dir).',
        cause: error,
      });
}
