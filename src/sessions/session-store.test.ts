import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { OutputLog } from './output-log.ts';
import { SessionStore } from './session-store.ts';

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'hotcell-store-')), 'state');
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true }));

function codeOf(work: () => unknown): string {
  try {
    work();
    return 'none';
  } catch (error) {
    return error instanceof HotcellError ? error.code : String(error);
  }
}

describe('the store', () => {
  test('[RS-22] [SC-05] is for its owner alone, and has the same id every time', () => {
    const first = SessionStore.open(folder);
    const { id } = first;
    expect(id).toMatch(/^[0-9a-f]{12}$/);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    first.close();
    const again = SessionStore.open(folder);
    expect(again.id).toBe(id);
    again.close();
  });

  test('[RS-22] of another version is refused and left as it is', () => {
    SessionStore.open(folder).close();
    const db = new DatabaseSync(join(folder, 'sessions.db'));
    db.exec("UPDATE meta SET value = '99' WHERE name = 'schema'");
    db.close();
    expect(() => SessionStore.open(folder)).toThrow(
      expect.objectContaining({
        code: 'DATA_TOO_NEW',
        message: expect.stringContaining('format 99'),
      }),
    );
  });

  test('[RS-22] that cannot be used names the folder and the setting', () => {
    const hint = expect.stringContaining('sessions.dir');
    expect(() => SessionStore.open('/dev/null/state')).toThrow(
      expect.objectContaining({
        code: 'SESSIONS_UNAVAILABLE',
        message: expect.stringContaining('/dev/null/state'),
        hint,
      }),
    );
  });

  test('[RS-22] tells whether the host was restarted', () => {
    const store = SessionStore.open(folder);
    expect([store.noteBoot('a'), store.noteBoot('a'), store.noteBoot('b'), store.noteBoot('b')]).toEqual([
      false,
      false,
      true,
      false,
    ]);
    store.close();
  });

  test('[RS-22] all of a step or nothing', () => {
    const store = SessionStore.open(folder);
    const boom = (): void => {
      store.noteBoot('inside');
      throw new Error('boom');
    };
    expect(() => store.atomically(boom)).toThrow('boom');
    expect(store.noteBoot('after')).toBe(false);
    store.close();
  });
});

test('[RS-22] [SC-02] a server killed with -9 leaves every command it began, and all output it acknowledged', async () => {
  const path = (name: string): string => JSON.stringify(fileURLToPath(new URL(name, import.meta.url)));
  const program = `
    import { join } from 'node:path';
    import { OutputLog } from ${path('./output-log.ts')};
    import { SessionStore } from ${path('./session-store.ts')};
    import { toNewSession } from ${path('./new-session.ts')};
    import { SessionSettings } from ${path('./settings.ts')};
    const store = SessionStore.open(process.argv[1]);
    const settings = SessionSettings.parse({});
    const request = { project: 'p', runtime: 'shell', network: false, dotenv: false, setup: false, limits: {} };
    const asked = toNewSession({ tenant: 't', settings, now: Date.now() }, request);
    store.sessions.begin(asked, '/workspace/p');
    const { id } = asked;
    store.sessions.complete(id, { id: 'cell', record: 'secret' });
    for (let position = 1; ; position++) {
      const exec = 'exec_' + position;
      store.execs.add({ id: exec, session: id, position, command: 'c', variables: [], kind: 'background', startedAt: 1,
        deadline: undefined, facts: { timeoutMs: null, reportChanges: false } });
      store.execs.begin(exec, { number: position, phase: 'command', outputBase: 0 });
      const log = OutputLog.create(join(process.argv[1], 'output', exec), settings.output);
      for (let count = 0; count < 5; count++) await log.append('stdout', Buffer.from('x'.repeat(position * 50)));
      process.stdout.write(exec + ' ' + log.bytes + '\\n');
      log.close();
    }`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  let said = '';
  let refused = '';
  for await (const chunk of child.stdout) {
    if (said === '') refused = codeOf(() => SessionStore.open(folder));
    said += String(chunk);
    if (said.split('\n').length > 60) child.kill('SIGKILL');
  }
  expect(await ended).toEqual([null, 'SIGKILL']);
  expect(refused).toBe('SESSIONS_UNAVAILABLE');
  const store = SessionStore.open(folder);
  const [session, ...others] = store.sessions.living();
  expect([session, others]).toMatchObject([{ state: 'running', record: 'secret' }, []]);
  const rows = store.execs.of(session?.id ?? '');
  const acknowledged = said.trim().split('\n');
  for (const line of acknowledged.slice(0, -1)) {
    const [exec = '', bytes] = line.split(' ');
    expect(rows.find(({ id }) => id === exec)).toMatchObject({ number: Number(exec.slice(5)), result: null });
    const log = await OutputLog.reopen(join(store.outputFolder, exec), {
      headBytes: 65_536,
      tailBytes: 65_536,
    });
    expect(log.bytes).toBe(Number(bytes));
  }
  store.close();
});
