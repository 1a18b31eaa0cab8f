import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { ExecReply, OutputReply } from '../../src/wire/session-exec.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';
import { StartFailure, dataDirectoryOf } from '../support/server.ts';
import type { Hand } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';
import { count, countCells, countMarked, expectWhole } from '../support/session-work.ts';

/** What a server of format 1 wrote before it was killed, and what it answered before that. */
const FIXTURE = fileURLToPath(new URL('../fixtures/sessions-format-1/', import.meta.url));
const TOLD = JSON.parse(readFileSync(join(FIXTURE, 'told.json'), 'utf8')) as {
  session: string;
  ended: string;
  running: string;
  execs: ExecReply[];
  outputs: Record<string, OutputReply>;
};

function edit<Found>(served: ServedSessions, work: (db: DatabaseSync) => Found): Found {
  using db = new DatabaseSync(join(dataDirectoryOf(served.stateDirectory), 'sessions.db'));
  return work(db);
}

/** A session with a command that counts; its server is killed. */
async function leave(served: ServedSessions): Promise<{ hand: Hand; counter: string; marker: string }> {
  const hand = await served.door().create({ project_id: 'shop', user_id: 'ann', network: ['example.org'] });
  const marker = makeMarker();
  const counter = await hand.begin(count(marker));
  await waitFor('it counts', async () => (await hand.output(counter)).includes('1 '));
  await served.kill('SIGKILL');
  return { hand, counter, marker };
}

/** It goes on, and not a line of it is lost. */
async function expectWholeCount(hand: Hand, counter: string): Promise<void> {
  await hand.print('touch stop', { cwd: hand.made.workspace_path });
  expect(await hand.result(counter)).toMatchObject({ ok: true });
  expectWhole(await hand.output(counter));
}

describeEach([OCI_FRESH], (way) => {
  describe('data that another version wrote', () => {
    test('[SC-07] of format 1: the cell goes on, and all is told as that version told it', async () => {
      await using served = await ServedSessions.open({ way });
      const { marker } = await leave(served);
      const data = dataDirectoryOf(served.stateDirectory);
      const { meta, session, exec, helpers } = edit(served, (db) => ({
        meta: db.prepare('SELECT * FROM meta').all(),
        session: db.prepare('SELECT cell_id, record, facts FROM sessions').get() ?? {},
        exec: db.prepare('SELECT number FROM execs').get() ?? {},
        helpers: db.prepare('SELECT number FROM helpers').all(),
      }));
      for (const name of ['sessions.db', 'sessions.db-wal', 'sessions.db-shm', 'output'])
        rmSync(join(data, name), { recursive: true, force: true });
      cpSync(join(FIXTURE, 'output'), join(data, 'output'), { recursive: true });
      edit(served, (db) => {
        db.exec(readFileSync(join(FIXTURE, 'sessions.sql'), 'utf8'));
        // The cell of the fixture is long gone; that of the session takes its place.
        for (const { name, value } of meta)
          if (name !== 'schema')
            db.prepare('UPDATE meta SET value = ? WHERE name = ?').run(String(value), String(name));
        const now = Date.now();
        db.exec('DELETE FROM helpers');
        for (const { number } of helpers)
          db.prepare('INSERT INTO helpers VALUES (?, ?)').run(TOLD.session, Number(number));
        db.prepare(
          "UPDATE sessions SET cell_id = ?, record = ?, facts = ?, touched_at = ? WHERE state = 'running'",
        ).run(String(session['cell_id']), String(session['record']), String(session['facts']), now);
        db.prepare("UPDATE sessions SET ended_at = ? WHERE state = 'ended'").run(now);
        db.prepare('UPDATE execs SET number = ?, deadline = NULL WHERE id = ?').run(
          Number(exec['number']),
          TOLD.running,
        );
      });
      await served.start();
      expect(countMarked(marker)).toBe(1);
      const listed = await served.door().list();
      expect(listed).toMatchObject([
        { session_id: TOLD.session, project_id: 'shop', user_id: 'ann', cwd: '/tmp' },
      ]);
      const [hand] = listed.map((made) => served.door().hold(made));
      assert.ok(hand !== undefined);
      const { execs } = await hand.get<{ execs: ExecReply[] }>('GET', '/execs');
      const isOver = ({ exec_id: id }: ExecReply): boolean => id !== TOLD.running;
      expect(execs.filter(isOver)).toEqual(TOLD.execs.filter(isOver));
      for (const { exec_id: id } of execs.filter(isOver))
        expect(await hand.get('GET', `/execs/${id}/output`)).toEqual(TOLD.outputs[id]);
      expect(await served.door().ask('GET', `/${TOLD.ended}`)).toMatchObject({ status: 410 });
      await hand.print('touch stop', { cwd: '/workspace/shop' });
      expect(await hand.result(TOLD.running)).toMatchObject({ ok: true });
    });

    test('[SC-07] with fields that are new or missing, and with rows that nobody can read', async () => {
      await using served = await ServedSessions.open({ way });
      const { hand, counter, marker } = await leave(served);
      await served.start();
      const good = (await hand.exec('exit 3')).exec_id;
      const bad = (await hand.exec('exit 4')).exec_id;
      await served.kill('SIGKILL');
      edit(served, (db) => {
        db.exec("UPDATE sessions SET facts = json_set(json_remove(facts, '$.ttlMs'), '$.weather', 'fine')");
        db.exec(`UPDATE execs SET result = '{"exitCode": 3, "mood": "good"}' WHERE id = '${good}'`);
        db.exec(`UPDATE execs SET result = 'no JSON' WHERE id = '${bad}'`);
      });
      await served.start();
      expect(countMarked(marker)).toBe(1);
      expect(await hand.result(good)).toMatchObject({ exec_id: good, exit_code: 3, stdout_bytes: 0 });
      expect(await hand.ask('GET', `/execs/${bad}`)).toMatchObject({ status: 404 });
      expect(served.server.output).toMatch(
        new RegExp(`exec record unreadable.*${bad}|${bad}.*exec record unreadable`),
      );
      // Now the session itself.
      await served.kill('SIGKILL');
      const facts = edit(served, (db) => {
        const whole = String(db.prepare('SELECT facts FROM sessions').get()?.['facts']);
        db.exec("UPDATE sessions SET facts = 'no JSON'");
        return whole;
      });
      await served.start();
      expect(await hand.ask('GET', '')).toMatchObject({ status: 503, body: { code: 'SESSION_UNREACHABLE' } });
      expect(countMarked(marker)).toBe(1);
      await served.kill('SIGKILL');
      edit(served, (db) => db.prepare('UPDATE sessions SET facts = ?').run(facts));
      await served.start();
      await expectWholeCount(hand, counter);
    });

    test('[SC-07] of a later format: the start stops with a message, and no cell is touched', async () => {
      await using served = await ServedSessions.open({ way });
      const { hand, counter, marker } = await leave(served);
      const version = edit(served, (db) =>
        Number(db.prepare("SELECT value FROM meta WHERE name = 'schema'").get()?.['value']),
      );
      const set = (value: number): void =>
        edit(served, (db) => db.exec(`UPDATE meta SET value = '${value}' WHERE name = 'schema'`));
      set(version + 1);
      const failure: unknown = await served.startBeside().then(
        (server) => server.stop('SIGKILL'),
        (error: unknown) => error,
      );
      assert.ok(failure instanceof StartFailure, 'it started');
      const { code, output } = failure;
      expect(code).not.toBe(0);
      expect(output).toMatch(/later version of Hotcell/);
      expect(output).toContain('sessions.dir');
      expect(countMarked(marker)).toBe(1);
      set(version);
      await served.start();
      expect(await countCells(served)).toBe(1);
      await expectWholeCount(hand, counter);
    });
  });
});
