import type { DatabaseSync } from 'node:sqlite';
import { HotcellError } from '../core/errors.ts';

/**
 * The version of everything that sessions keep: tables, the JSON in them, and the records of output. A field that may be
 * missing needs no other number; a word that the version before would not understand does.
 */
const FORMAT_VERSION = 2;

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

/** What makes data of a version those of the next one. */
const MIGRATIONS: Readonly<Record<number, (db: DatabaseSync) => void>> = { 1: renameResults };

/** Makes the tables, or brings them to this version. Throws DATA_TOO_NEW, and then nothing was changed. */
export function prepareFormat(db: DatabaseSync, folder: string): void {
  const isNew = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() === undefined;
  if (isNew) {
    db.exec(`BEGIN EXCLUSIVE; ${SCHEMA}; INSERT INTO meta VALUES ('schema', '${FORMAT_VERSION}'); COMMIT`);
    return;
  }
  const version = requireFormat(db, folder);
  if (version !== FORMAT_VERSION) migrate(db, version);
}

/** This version, or one that can be brought to it. Throws DATA_TOO_NEW, SESSIONS_UNAVAILABLE. */
export function requireFormat(db: DatabaseSync, folder: string): number {
  const found = readMeta(db, 'schema');
  const version = Number(found);
  if (version > FORMAT_VERSION) throw toTooNew(folder, version);
  if (version === FORMAT_VERSION || MIGRATIONS[version] !== undefined) return version;
  throw new HotcellError('SESSIONS_UNAVAILABLE', `${folder} has no format that is known (${found})`, {
    hint: 'Name another folder (setting sessions.dir).',
  });
}

export function readMeta(db: DatabaseSync, name: string): string | undefined {
  const value = db.prepare('SELECT value FROM meta WHERE name = ?').get(name)?.['value'];
  return typeof value === 'string' ? value : undefined;
}

function toTooNew(folder: string, version: number): HotcellError {
  return new HotcellError(
    'DATA_TOO_NEW',
    `${folder} was written by a later version of Hotcell (format ${version}, here ${FORMAT_VERSION}); nothing was touched`,
  );
}

function migrate(db: DatabaseSync, from: number): void {
  db.exec('BEGIN EXCLUSIVE');
  try {
    for (let version = from; version < FORMAT_VERSION; version++) MIGRATIONS[version]?.(db);
    db.prepare("UPDATE meta SET value = ? WHERE name = 'schema'").run(String(FORMAT_VERSION));
    db.exec('COMMIT');
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK');
    throw error;
  }
}

/** In version 1 a result was stored as the reply of HTTP. */
function renameResults(db: DatabaseSync): void {
  const update = db.prepare('UPDATE execs SET result = ? WHERE id = ?');
  for (const { id, result } of db.prepare('SELECT id, result FROM execs WHERE result IS NOT NULL').all()) {
    const renamed = toCamelCase(String(result));
    if (renamed !== undefined) update.run(renamed, String(id));
  }
}

/** Undefined for what is no JSON: that is kept as it is, and reported by whoever reads it. */
function toCamelCase(json: string): string | undefined {
  const rename = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([name, inner]) => [
      name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      rename(inner),
    ]);
    return Object.fromEntries(entries);
  };
  try {
    return JSON.stringify(rename(JSON.parse(json)));
  } catch {
    return undefined;
  }
}
