import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { ownerRecord } from '../drivers/process/owner.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { SessionFixture } from '../sessions/session-fixture.double.ts';
import { findLeftCells, type LeftReport } from './left-cells.ts';

function look({ folder, driver }: SessionFixture, drivers = [driver]): Promise<LeftReport> {
  return findLeftCells({ sessions: { dir: folder, abandonedMs: 600_000 } }, drivers);
}

/** A folder with the sessions of a server that is gone, one of which is paused. */
async function leave(fixture: SessionFixture): Promise<string[]> {
  const sessions = await fixture.open();
  const [awake, paused] = [await fixture.create(sessions), await fixture.create(sessions)];
  await paused.pause();
  await fixture.crash(sessions);
  return [awake.id, paused.id].map(toSessionMark);
}

const idOf = ({ host }: SessionFixture): string => host.cells[0]?.spec.lasting?.store ?? '';

test('[WB-02, RS-22] one that is paused is named as such: it does not end by itself', async () => {
  await using fixture = new SessionFixture();
  const [awake, paused] = await leave(fixture);
  expect(await look(fixture)).toMatchObject({
    left: [
      { driver: 'scripted', cell: '1', session: awake, paused: false, until: expect.any(String) as unknown },
      { driver: 'scripted', cell: '2', session: paused, paused: true, until: null },
    ],
    otherStores: [],
    storeProblem: null,
  });
});

test('[WB-02] cells of the sessions of other folders are told apart, whether a server has ours or not', async () => {
  await using fixture = new SessionFixture();
  await using other = new SessionFixture();
  await leave(fixture);
  await leave(other);
  const elsewhere = {
    driver: 'scripted',
    store: idOf(other),
    cells: 2,
    since: expect.any(String) as unknown,
  };
  const drivers = [fixture.driver, other.driver];
  expect(await look(fixture, drivers)).toMatchObject({
    left: [{ cell: '1' }, { cell: '2' }],
    otherStores: [elsewhere],
  });
  // Nobody can look into the store of a server that lives.
  const served = await fixture.open({ server: await ownerRecord() });
  expect(await look(fixture, drivers)).toMatchObject({
    left: [],
    otherStores: [elsewhere],
    storeProblem: null,
  });
  await fixture.crash(served);
  rmSync(fixture.folder, { recursive: true });
  expect((await look(fixture, drivers)).otherStores).toHaveLength(2);
});

const SPOILED: readonly (readonly [string, string, RegExp, (file: string) => void])[] = [
  [
    'of a later version',
    'DATA_TOO_NEW',
    /format 99/,
    (file) => {
      using db = new DatabaseSync(file);
      db.exec("UPDATE meta SET value = '99' WHERE name = 'schema'");
    },
  ],
  [
    'that is no store',
    'SESSIONS_UNAVAILABLE',
    /cannot be used: file is not a database/,
    (file) => writeFileSync(file, 'x'.repeat(8192)),
  ],
];

test.each(SPOILED)(
  '[WB-02, SC-07] a store %s is a finding, and its cells are ours',
  async (_, code, words, spoil) => {
    await using fixture = new SessionFixture();
    await leave(fixture);
    spoil(join(fixture.folder, 'sessions.db'));
    expect(await look(fixture)).toMatchObject({
      left: [
        { cell: '1', session: null, until: null },
        { cell: '2', session: null },
      ],
      otherStores: [],
      storeProblem: {
        code,
        message: expect.stringMatching(words) as unknown,
        hint: expect.stringContaining('sessions.dir') as unknown,
      },
    });
  },
);

test('[WB-02] a driver that does not answer keeps nobody else from it', async () => {
  await using fixture = new SessionFixture();
  await using other = new SessionFixture();
  await leave(fixture);
  await leave(other);
  other.driver.lasting.list = () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'away'));
  expect((await look(fixture, [other.driver, fixture.driver])).left).toHaveLength(2);
});
