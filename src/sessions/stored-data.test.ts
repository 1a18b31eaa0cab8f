import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { SILENT_LOG } from '../core/log.ts';
import { ScriptedDriver } from './scripted-driver.double.ts';
import { SessionFixture, begin } from './session-fixture.double.ts';

const FIXTURE = fileURLToPath(new URL('../../test/fixtures/sessions-format-1/', import.meta.url));
const TOLD = JSON.parse(readFileSync(join(FIXTURE, 'told.json'), 'utf8')) as {
  session: string;
  ended: string;
  running: string;
  execs: { exec_id: string; output_bytes: number; result: Record<string, unknown> | null }[];
};

function edit(fixture: SessionFixture, work: (db: DatabaseSync) => void): void {
  using db = new DatabaseSync(join(fixture.folder, 'sessions.db'));
  work(db);
}

/** A reply of that version, as a use case would say it. */
function inOurWords(reply: object | null): unknown {
  const text = JSON.stringify(reply).replaceAll(/"[a-z_]+":/g, (name) =>
    name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
  );
  return JSON.parse(text);
}

/** What the log got, as lines that an operator could grep. */
function listen(): { lines: string[]; log: typeof SILENT_LOG } {
  const lines: string[] = [];
  const note = (facts: object, message: string): void =>
    void lines.push(`${message} ${JSON.stringify(facts)}`);
  return { lines, log: { ...SILENT_LOG, warn: note, error: note } };
}

/** A fixture with a session, one command that ended and one that runs; its server is gone. */
async function left(): Promise<{ fixture: SessionFixture; id: string; ended: string; running: string }> {
  const fixture = new SessionFixture();
  const before = await fixture.open();
  const session = await fixture.create(before);
  fixture.host.program = (command) => {
    command.say('said');
    if (command.text === 'short') command.exit(3);
  };
  const ended = await begin(session, 'short');
  await ended.result;
  const running = await begin(session, 'long', { background: true });
  await fixture.crash(before);
  return { fixture, id: session.id, ended: ended.id, running: running.id };
}

describe('data of the version before', () => {
  test('[SC-07] open with every session, command, result and output, and its cell goes on', async () => {
    await using fixture = new SessionFixture();
    const before = await fixture.open({ bootId: 'first' });
    const session = await fixture.create(before, { project: 'shop', user: 'ann' });
    fixture.host.program = (command) => command.say('begun\n');
    // As many as the cell of the fixture had, with our own one.
    for (let number = 0; number < 10; number++) await begin(session, 'x', { background: true });
    await fixture.crash(before);
    for (const name of ['sessions.db', 'sessions.db-wal', 'sessions.db-shm'])
      rmSync(join(fixture.folder, name), { force: true });
    cpSync(join(FIXTURE, 'output'), join(fixture.folder, 'output'), { recursive: true });
    edit(fixture, (db) => {
      db.exec(readFileSync(join(FIXTURE, 'sessions.sql'), 'utf8'));
      db.exec("UPDATE meta SET value = 'first' WHERE name = 'boot'; DELETE FROM helpers");
      db.prepare("UPDATE sessions SET cell_id = '1', record = 'record-1' WHERE state = 'running'").run();
    });
    const { lines, log } = listen();
    const sessions = await fixture.open({ log, settings: { endedMs: 2 ** 31 - 1 } });
    expect(lines).toEqual([]);
    expect(fixture.host.alive).toHaveLength(1);
    const caller = { tenant: { name: 'default', quotas: {} } };
    const found = sessions.find(caller, TOLD.session);
    expect(found.describe()).toMatchObject({
      project: 'shop',
      user: 'ann',
      cwd: '/tmp',
      network: ['example.org'],
    });
    expect(found.execs().map(({ id, state }) => [id, state])).toEqual(
      TOLD.execs.map(({ exec_id: id }) => [id, id === TOLD.running ? 'running' : 'ended']),
    );
    for (const { exec_id: id, result } of TOLD.execs)
      expect(found.findExec(id).describe().result ?? null).toEqual(inOurWords(result));
    expect(() => sessions.find(caller, TOLD.ended)).toThrow(/\(deleted\)/);
  });
});

describe('what is stored', () => {
  test('[SC-07] may have more than we know, and less: what is missing has a default', async () => {
    const { fixture, id, ended, running } = await left();
    await using _ = fixture;
    edit(fixture, (db) => {
      db.exec(`UPDATE execs SET result = '{"exitCode": 3, "mood": {"good": true}}' WHERE id = '${ended}'`);
      db.exec(`UPDATE execs SET facts = '{"colour": "red"}'`);
      db.exec(`UPDATE sessions SET facts = json_set(facts, '$.weather', 'fine', '$.limits.tea', 5)`);
      db.exec(`UPDATE sessions SET facts = json_remove(facts, '$.ttlMs', '$.runtime', '$.limits.openFiles')`);
    });
    const { lines, log } = listen();
    const found = (await fixture.open({ log })).find(fixture.caller, id);
    expect(lines).toEqual([]);
    expect(found.describe()).toMatchObject({ project: 'shop', runtime: 'shell', state: 'running' });
    expect(await found.findExec(ended).result).toMatchObject({
      execId: ended,
      exitCode: 3,
      ok: false,
      end: { reason: 'server_restarted' },
      limitsReached: [],
    });
    expect(found.findExec(running).describe().state).toBe('running');
  });

  test.each([
    ['result', 'no JSON at all'],
    ['result', '{"exitCode": "three"}'],
    ['result', '{"end": {"reason": "bored"}}'],
    ['kind', 'sideways'],
  ])('[SC-07] a command whose %s is %s costs nobody else anything, and is kept', async (column, value) => {
    const { fixture, id, ended, running } = await left();
    await using _ = fixture;
    const stored = (): unknown => {
      let row: unknown;
      edit(fixture, (db) => (row = db.prepare('SELECT * FROM execs WHERE id = ?').get(ended)));
      return row;
    };
    edit(fixture, (db) => db.prepare(`UPDATE execs SET ${column} = ? WHERE id = ?`).run(value, ended));
    const asWritten = stored();
    const { lines, log } = listen();
    const after = await fixture.open({ log });
    const found = after.find(fixture.caller, id);
    expect(lines).toEqual([expect.stringMatching(`^exec record unreadable .*${ended}`)]);
    expect(fixture.host.alive).toHaveLength(1);
    expect(() => found.findExec(ended)).toThrow(
      expect.objectContaining({ code: 'EXEC_UNKNOWN', message: expect.stringContaining('cannot be read') }),
    );
    fixture.host.cells[0]?.users[1]?.exit(0);
    expect((await found.findExec(running).report()).stdout).toBe('said');
    await fixture.stop(after);
    expect(stored()).toEqual(asWritten);
  });

  test('[SC-07] a running command whose row cannot be read is not taken for one of ours that was left over', async () => {
    const { fixture, running } = await left();
    await using _ = fixture;
    edit(fixture, (db) => db.prepare("UPDATE execs SET facts = '?' WHERE id = ?").run(running));
    await fixture.open();
    expect(fixture.host.cells[0]?.users[1]).toMatchObject({ isEnded: false, heard: [] });
  });

  test.each([
    ['no JSON at all', 0],
    ['{"volumeKey": "%"}', 1],
  ])(
    '[SC-07] a session whose facts are %s goes on without us, until a start that can read it',
    async (facts, kept) => {
      const { fixture, id, running } = await left();
      await using _ = fixture;
      let whole = '';
      edit(fixture, (db) => {
        whole = String(db.prepare('SELECT facts FROM sessions').get()?.['facts']);
        const { volumeKey } = JSON.parse(whole) as { volumeKey: string };
        db.prepare('UPDATE sessions SET facts = ?').run(facts.replace('%', volumeKey));
      });
      fixture.volumes.events.length = 0;
      const { lines, log } = listen();
      const blind = await fixture.open({ log });
      expect(lines).toEqual([expect.stringMatching(/^session unreachable .*"cell":"1"/)]);
      expect(() => blind.find(fixture.caller, id)).toThrow(
        expect.objectContaining({ code: 'SESSION_UNREACHABLE' }),
      );
      expect(() => blind.find(fixture.stranger, id)).toThrow(
        expect.objectContaining({ code: 'SESSION_UNKNOWN' }),
      );
      expect(fixture.host.alive).toHaveLength(1);
      // Nobody may let go of a volume as long as it could be the one of that session.
      expect(fixture.volumes.events).toEqual(kept === 1 ? ['reclaim all but 1'] : []);
      const other = await fixture.create(blind);
      await other.destroy();
      expect(fixture.volumes.events.filter((event) => event.startsWith('release'))).toEqual([]);
      await fixture.stop(blind);
      edit(fixture, (db) => db.prepare('UPDATE sessions SET facts = ? WHERE id = ?').run(whole, id));
      const after = await fixture.open();
      expect(after.find(fixture.caller, id).findExec(running).describe().state).toBe('running');
    },
  );

  test('[SC-07] only a cell that its driver calls lost ends a session', async () => {
    const { fixture, id, running } = await left();
    await using _ = fixture;
    const driver = new ScriptedDriver(fixture.host);
    driver.lasting.adopt = () => Promise.reject(new HotcellError('CELL_START_FAILED', 'no answer'));
    const blind = await fixture.open({ driver });
    expect(() => blind.find(fixture.caller, id)).toThrow(/could not take it over: no answer/);
    expect(fixture.host.alive).toHaveLength(1);
    await fixture.stop(blind);
    const after = await fixture.open();
    expect((await after.find(fixture.caller, id).findExec(running).read(0, 10)).chunks).toHaveLength(1);
  });

  test('[SC-07] of a later version stops the start, and nothing is touched', async () => {
    const { fixture, id } = await left();
    await using _ = fixture;
    edit(fixture, (db) => db.exec("UPDATE meta SET value = '3' WHERE name = 'schema'"));
    await expect(fixture.open()).rejects.toMatchObject({
      code: 'DATA_TOO_NEW',
      message: expect.stringContaining('format 3'),
      hint: expect.stringContaining('sessions.dir'),
    });
    expect(fixture.host.alive).toHaveLength(1);
    edit(fixture, (db) => db.exec("UPDATE meta SET value = '2' WHERE name = 'schema'"));
    expect((await fixture.open()).find(fixture.caller, id).describe().state).toBe('running');
  });
});
