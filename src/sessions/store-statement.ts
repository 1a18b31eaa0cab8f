import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite';
import { HotcellError, messageOf } from '../core/errors.ts';

type Row = Record<string, SQLOutputValue>;

export interface Statement {
  run(...values: SQLInputValue[]): void;
  get(...values: SQLInputValue[]): Row | undefined;
  all(...values: SQLInputValue[]): Row[];
}

const SQLITE_FULL = 13;

export function prepare(db: DatabaseSync, sql: string): Statement {
  const statement = db.prepare(sql);
  return {
    run: (...values) => {
      try {
        statement.run(...values);
      } catch (error) {
        throw toFullError(error);
      }
    },
    get: (...values) => statement.get(...values),
    all: (...values) => statement.all(...values),
  };
}

/** A full disk under the store is no defect of ours. */
export function toFullError(error: unknown): unknown {
  if (!isSqliteError(error, SQLITE_FULL)) return error;
  return new HotcellError('SESSIONS_UNAVAILABLE', messageOf(error), { cause: error });
}

export function isSqliteError(error: unknown, code: number): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === code;
}
