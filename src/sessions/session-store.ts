import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { HotcellError, messageOf } from '../core/errors.ts';
import { ExecRows } from './exec-rows.ts';
import { SessionRows } from './session-rows.ts';
import { prepareFormat, readMeta, requireFormat } from './store-format.ts';
import { isSqliteError, prepare, toFullError } from './store-statement.ts';

const SQLITE_BUSY = 5;
/** How long to wait for somebody who is just looking at the store, such as `hotcell doctor`. */
const LOOK_MS = 1000;

/** Has a record of the process that opened the store last, which may be dead, and the id of the store. */
export const serverFileOf = (folder: string): string => join(folder, 'server.json');
const ServerFile = z.object({ store: z.string().regex(/^[0-9a-f]{12}$/) });
const databaseOf = (folder: string): string => join(folder, 'sessions.db');

/** What must be known after a crash of the server: sessions, and what ran in them. */
export class SessionStore {
  readonly sessions: SessionRows;
  readonly execs: ExecRows;
  /** Twelve hex digits that name this store towards drivers: cells of other stores are not ours. */
  readonly id: string;
  readonly outputFolder: string;
  /** Made just now: no server before us has left anything. */
  readonly isNew: boolean;
  readonly #db: DatabaseSync;

  private constructor(db: DatabaseSync, folder: string, isNew: boolean) {
    this.#db = db;
    this.isNew = isNew;
    this.id = this.#meta('keeper', () => randomBytes(6).toString('hex'));
    this.outputFolder = join(folder, 'output');
    this.sessions = new SessionRows((sql) => prepare(db, sql));
    this.execs = new ExecRows((sql) => prepare(db, sql));
  }

  static isIn(folder: string): boolean {
    try {
      return statSync(databaseOf(folder), { throwIfNoEntry: false }) !== undefined;
    } catch {
      // Whoever may not look must not take it for an empty place.
      return true;
    }
  }

  /** Of the store in this folder, also while a server has it or nobody can read it. */
  static idIn(folder: string): string | undefined {
    try {
      return ServerFile.parse(JSON.parse(readFileSync(serverFileOf(folder), 'utf8'))).store;
    } catch {
      return undefined;
    }
  }

  /** To look at what a server that is gone has left, and to change nothing. Throws SESSIONS_UNAVAILABLE, DATA_TOO_NEW. */
  static look(folder: string): SessionStore {
    let db: DatabaseSync | undefined;
    try {
      db = new DatabaseSync(databaseOf(folder), { readOnly: true });
      requireFormat(db, folder);
      return new SessionStore(db, folder, false);
    } catch (error) {
      db?.close();
      throw toStoreError(error, folder);
    }
  }

  /**
   * `server` is noted for whoever wants us to stop. Throws SESSIONS_UNAVAILABLE when another server uses the folder, or it
   * cannot be used; DATA_TOO_NEW.
   */
  static open(folder: string, server?: string): SessionStore {
    let db: DatabaseSync | undefined;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const isNew = !SessionStore.isIn(folder);
      db = new DatabaseSync(databaseOf(folder), { enableForeignKeyConstraints: true, timeout: LOOK_MS });
      // EXCLUSIVE: nobody else gets in, until this process ends in whatever way. NORMAL: what is written survives the end of
      // this process, though perhaps not of the machine; the cells would not survive that either.
      db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
      prepareFormat(db, folder);
      const store = new SessionStore(db, folder, isNew);
      if (server !== undefined) {
        const record = JSON.stringify({ ...z.looseObject({}).parse(JSON.parse(server)), store: store.id });
        writeFileSync(serverFileOf(folder), record, { mode: 0o600 });
      }
      return store;
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
      // A full disk has ended some of them already.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw toFullError(error);
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

export function toStoreError(error: unknown, folder: string): HotcellError {
  if (error instanceof HotcellError) return error;
  return isSqliteError(error, SQLITE_BUSY)
    ? new HotcellError('SESSIONS_UNAVAILABLE', `another server uses ${folder}`, {
        hint: 'Stop it, or give this one a folder of its own (setting sessions.dir).',
        cause: error,
      })
    : new HotcellError('SESSIONS_UNAVAILABLE', `${folder} cannot be used: ${messageOf(error)}`, {
        hint: 'Mend it, or name another folder (setting sessions.dir).',
        cause: error,
      });
}
