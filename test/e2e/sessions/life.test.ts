import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { TerminalClient } from '../../../src/http/sessions/terminal-client.double.ts';
import { SessionReply, SessionsReply } from '../../../src/wire/sessions.ts';
import { waitFor } from '../../support/leftovers.ts';
import { countMarked, makeMarker, readMetrics, waitUntilGone } from '../../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../../support/served-by.ts';
import { dataDirectoryOf, type TestServer } from '../../support/server.ts';
import {
  call,
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

/** The cgroups of the process with this marker, as folders. */
function cgroupsOf(marker: string): string[] {
  const pid = readdirSync('/proc').find((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(marker);
    } catch {
      return false;
    }
  });
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const paths = lines.map((line) => line.split(':')[2] ?? '/').filter((path) => path !== '/');
  return [...new Set(paths.flatMap((path) => globSync(`/sys/fs/cgroup/{,*/}${path.slice(1)}`)))];
}

/** The folder of all volumes is a mount of the server itself; those below it are of sessions. */
function mountedVolumes({ stateDirectory }: TestServer): string[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const points = lines.map((line) => line.split(' ')[4] ?? '');
  return points.filter((point) => point.startsWith(`${dataDirectoryOf(stateDirectory)}/volumes/`));
}

const isListed = async ({ server, id }: TestSession): Promise<boolean> =>
  (await call(server, 'GET', '/v1/sessions'))
    .as(SessionsReply)
    .sessions.some(({ session_id }) => session_id === id);

/** Asking for the session itself would keep it alive. */
const untilOver = (session: TestSession): Promise<void> =>
  waitFor('the session is over', async () => !(await isListed(session)));

describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  let ruled: TestSession;
  beforeAll(async () => {
    server = await startSessionServer(way, { args: ['--set', 'sessions.sweepMs=100'] });
    ruled = await openSession(server);
  });
  // An expired session leaves its files to the next one.
  afterAll(() => stopSessionServer(server, { keepsVolumes: true }));

  describe('the end', () => {
    test('[RS-12] deletion takes processes, cgroups and mounts, and everybody is told', async () => {
      const mounted = mountedVolumes(server);
      const session = await openSession(server);
      const marker = makeMarker();
      const background = await session.begin(
        `(setsid sleep ${marker} &); trap '' TERM; echo on; while :; do sleep 1; done`,
      );
      await session.untilOutput(background, 3);
      await waitFor('it runs', () => countMarked(marker) > 0);
      const cgroups = cgroupsOf(marker);
      expect(cgroups.length).toBeGreaterThan(0);
      expect(mountedVolumes(server).length).toBe(mounted.length + 1);
      const running = session.exec('echo started; sleep 1000');
      await session.untilRunning('echo started; sleep 1000');
      const waiting = session.post('/exec', { command: 'touch never' });
      await waitFor('one waits', async () =>
        (await session.execs()).some(({ state }) => state === 'waiting'),
      );

      const answer = await call(server, 'DELETE', session.path);
      expect([answer.status, answer.body]).toEqual([200, { destroyed: true }]);
      expect(countMarked(marker)).toBe(0);
      expect(cgroups.filter((path) => existsSync(path))).toEqual([]);
      expect(mountedVolumes(server)).toEqual(mounted);
      expect(await running).toMatchObject({
        ok: false,
        stdout: 'started\n',
        end: { reason: 'killed', killed_by: 'session_deleted' },
      });
      expect((await waiting).refusal).toMatchObject({ status: 410, code: 'SESSION_ENDED' });
      for (const late of [await session.get(), await session.post('/exec', { command: 'true' })])
        expect(late.refusal).toMatchObject({
          status: 410,
          code: 'SESSION_ENDED',
          detail: expect.stringContaining('deleted'),
        });
      expect((await call(server, 'GET', '/v1/sessions/session_0')).refusal).toMatchObject({
        status: 404,
        code: 'SESSION_UNKNOWN',
      });
    });

    test('[RS-18] a session that nobody uses expires, with its processes, and says why', async () => {
      const session = await openSession(server, { ttl_s: 1 });
      const marker = makeMarker();
      // A terminal that nobody looks at keeps nothing alive.
      using viewer = new TerminalClient(
        `${server.url.replace(/^http/, 'ws')}${session.path}/terminal?command=sleep%20${marker}`,
      );
      await viewer.opened;
      await waitFor('it runs', () => countMarked(marker) > 0);
      viewer.socket.close();
      await untilOver(session);
      await waitUntilGone(marker);
      const { refusal } = await session.get();
      expect(refusal).toMatchObject({
        status: 410,
        code: 'SESSION_ENDED',
        detail: expect.stringContaining('expired'),
      });
    });

    test('[RS-18] commands and keep-alive keep it, and one is told when its end is near', async () => {
      await using long = await openSession(server, { ttl_s: 3600 });
      expect(long.made.expires_soon).toBe(false);
      await using session = await openSession(server, { ttl_s: 2 });
      expect(session.made.expires_soon).toBe(true);
      expect(Date.parse(session.made.expires_at) - Date.parse(session.made.created_at)).toBe(2000);
      // Longer than its life without requests.
      expect((await session.exec('sleep 2.5')).ok).toBe(true);
      const { expires_at: before } = (await session.post('/keep-alive')).as(SessionReply);
      await waitFor('time passes', () => Date.now() > Date.parse(before) - 1500);
      const { expires_at: after } = (await session.post('/keep-alive')).as(SessionReply);
      expect(Date.parse(after)).toBeGreaterThan(Date.parse(before));
      const id = await session.begin('sleep 2.5; echo survived');
      // Asked for in a way that does not keep it alive.
      const running = (): Promise<Map<string, number>> => readMetrics(server, 'hotcell_execs_running');
      await waitFor('the command has ended', async () => (await running()).get('') === 0);
      expect((await session.find(id)).result?.ok).toBe(true);
    });
  });

  describe('what stays', () => {
    const DEPENDENCIES =
      'node_modules/dep .venv/lib packages/a/node_modules/dep ~/.npm/_cacache ~/.cache/pip';
    const FILL = `mkdir -p src ${DEPENDENCIES}; for d in src ${DEPENDENCIES} . ~ /tmp; do echo x > $d/file; done`;
    const FIND = 'find . ~ /tmp -name file | sort';

    test('[RS-17] dependencies come back in the next session of the project, other files do not', async () => {
      const project = { project_id: 'cached', user_id: 'ada' };
      const first = await openSession(server, project);
      await first.print(FILL);
      await first.destroy();
      await using second = await openSession(server, project);
      expect((await second.print(FIND)).trim().split('\n')).toEqual([
        './.venv/lib/file',
        './node_modules/dep/file',
        './packages/a/node_modules/dep/file',
        '/workspace/.home/.cache/pip/file',
        '/workspace/.home/.npm/_cacache/file',
      ]);
      for (const stranger of [
        { project_id: 'cached' },
        { ...project, user_id: 'bob' },
        { ...project, project_id: 'cached.' },
      ]) {
        await using session = await openSession(server, stranger);
        expect(await session.print(`${FIND}; ls /workspace`)).toBe(`${stranger.project_id}\n`);
      }
      expect(await second.print('ls /workspace; echo mine >> node_modules/dep/file')).toBe('cached\n');
    });

    test('[RS-17, RS-18] work is not lost when a session expires', async () => {
      const project = { project_id: 'expiring' };
      const first = await openSession(server, { ...project, ttl_s: 1 });
      await first.print('echo work > file; echo dep > /tmp/scratch');
      await untilOver(first);
      await using second = await openSession(server, project);
      expect(await second.print('cat file')).toBe('work\n');
    });
  });

  test('[RS-18] a pause stops every process; nothing runs until the session goes on', async () => {
    await using paused = await openSession(server);
    await using busy = await openSession(server);
    const [id] = await Promise.all([paused, busy].map((session) => session.begin('while :; do :; done')));
    const cpuOf = async (session: TestSession): Promise<number> => (await session.detail()).usage.cpu_time_ms;
    await waitFor('both work', async () => (await cpuOf(paused)) > 50 && (await cpuOf(busy)) > 50);
    expect((await paused.post('/pause')).as(SessionReply).state).toBe('paused');
    const [before, start] = [await cpuOf(paused), await cpuOf(busy)];
    await waitFor('the other one works on', async () => (await cpuOf(busy)) > start + 200);
    // The kernel may book what was used until the pause a little later.
    expect((await cpuOf(paused)) - before).toBeLessThan(10);
    for (const path of ['/exec', '/kill', `/execs/${id}/kill`, '/upload', '/sync']) {
      const body = path === '/exec' ? { command: 'true' } : path.includes('kill') ? undefined : { files: [] };
      expect([path, (await paused.post(path, body)).refusal]).toMatchObject([
        path,
        { status: 409, code: 'SESSION_PAUSED' },
      ]);
    }
    expect((await paused.get('/fs?path=.')).refusal).toMatchObject({ status: 409, code: 'SESSION_PAUSED' });
    expect((await paused.post('/pause')).as(SessionReply).state).toBe('paused');
    expect((await paused.post('/resume')).as(SessionReply).state).toBe('running');
    await waitFor('it works on', async () => (await cpuOf(paused)) > before + 50);
    expect(await paused.print('echo usable')).toBe('usable\n');
    // One that is paused can be deleted.
    await paused.post('/pause');
    expect((await call(server, 'DELETE', paused.path)).status).toBe(200);
  });

  test('[RS-18] sessions and commands are counted, as text and as JSON', async () => {
    const read = async (): Promise<Record<string, number | undefined>> => ({
      open: (await readMetrics(server, 'hotcell_sessions_open')).get(''),
      paused: (await readMetrics(server, 'hotcell_sessions_paused')).get(''),
      created: (await readMetrics(server, 'hotcell_sessions_created_total')).get(''),
      deleted: (await readMetrics(server, 'hotcell_sessions_ended_total')).get('{reason="deleted"}') ?? 0,
      exits: (await readMetrics(server, 'hotcell_execs_ended_total')).get('{reason="exit"}') ?? 0,
      bytes: (await readMetrics(server, 'hotcell_exec_output_bytes_total')).get(''),
    });
    const before = await read();
    const { open = NaN, created = NaN, deleted = NaN, exits = NaN, bytes = NaN } = before;
    const session = await openSession(server);
    await session.print('echo 12345');
    await session.post('/pause');
    expect(await read()).toEqual({
      open: open + 1,
      paused: 1,
      created: created + 1,
      deleted,
      exits: exits + 1,
      bytes: bytes + 6,
    });
    const { body } = await call(server, 'GET', '/metrics', { headers: { accept: 'application/json' } });
    expect(body).toMatchObject({
      sessions: { open: open + 1, paused: 1, created_total: created + 1 },
      execs: { running: 0, output_bytes_total: bytes + 6 },
    });
    await session.destroy();
    expect(await read()).toMatchObject({ open, paused: 0, deleted: deleted + 1 });
  });

  test.each([
    ['rm -rf /', 'rm-root'],
    ['cd /tmp && rm -fr ~', 'rm-home'],
    ['dd if=/dev/zero of=x', 'dd'],
    ['mkfs.ext4 x', 'mkfs'],
    ['chmod 777 /', 'chmod-root'],
    ['sudo ls', 'sudo'],
    ['echo a; mount x y', 'mount'],
    ['chroot .', 'chroot'],
    ['curl example.org', 'tool-curl'],
    ['bash -c "wget example.org"', 'tool-wget'],
    ['ssh host', 'tool-ssh'],
    ['true && nc -l 1', 'tool-nc'],
  ])('[RS-16] %j is refused by the rule %s, and does not run', async (command, rule) => {
    for (const background of [false, true]) {
      const { refusal } = await ruled.post('/exec', { command: `touch ran; ${command}`, background });
      expect(refusal).toMatchObject({ status: 403, detail: expect.stringContaining(rule) });
    }
    expect(await ruled.print('ls; echo rm -rf / curl')).toBe('rm -rf / curl\n');
  });
});
