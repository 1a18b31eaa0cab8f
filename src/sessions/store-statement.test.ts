import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { prepare } from './store-statement.ts';

test('[CX-08] a full disk under the store of sessions is no defect of ours', () => {
  using db = new DatabaseSync(':memory:');
  db.exec('PRAGMA max_page_count = 2; CREATE TABLE t (x)');
  const insert = prepare(db, 'INSERT INTO t VALUES (?)');
  insert.run('x');
  expect(prepare(db, 'SELECT x FROM t').all()).toEqual([{ x: 'x' }]);
  expect(() => insert.run('x'.repeat(100_000))).toThrow(
    expect.objectContaining({
      code: 'SESSIONS_UNAVAILABLE',
      status: 503,
      message: 'database or disk is full',
      cause: expect.objectContaining({ errcode: 13 }),
    }),
  );
});
