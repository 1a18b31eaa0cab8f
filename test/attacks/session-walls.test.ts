import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ExecReply } from '../../src/wire/session-exec.ts';
import { waitFor } from '../support/leftovers.ts';
import { makeMarker } from '../support/live-server.ts';
import { FRESH_WAYS, describeEach } from '../support/served-by.ts';
import { dataDirectoryOf } from '../support/server.ts';
import type { Hand, SessionDoor } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';
import { KEYS, TENANTS } from '../support/session-tenants.ts';

const SECRET = `secret-${crypto.randomUUID()}`;
/** In two parts, so that a search does not find itself. */
const NEEDLE = `'${SECRET.slice(0, 20)}''${SECRET.slice(20)}'`;

describeEach(FRESH_WAYS, (way) => {
  let served: ServedSessions;
  let door: SessionDoor;
  let hand: Hand;
  let neighbour: Hand;
  beforeAll(async () => {
    served = await ServedSessions.open({
      way,
      keys: KEYS,
      args: TENANTS,
      env: { MY_SECRET: SECRET, AWS_SECRET_ACCESS_KEY: SECRET },
    });
    door = served.door();
    neighbour = await door.create({ project_id: 'neighbour' });
    await neighbour.get('POST', '/upload', { files: [{ path: 'private.txt', content: SECRET }] });
  });
  afterAll(() => served[Symbol.asyncDispose]());
  beforeEach(async () => {
    hand = await door.create();
  });
  afterEach(async () => {
    await hand.expectUsable();
    await hand.remove();
    await neighbour.expectUsable();
  });

  describe('inside', () => {
    test('[RS-14] not root, with nothing to gain', async () => {
      const status = await hand.print('cat /proc/self/status');
      const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
      for (const name of ['Uid', 'Gid']) {
        for (const id of field(name).split('\t')) expect(Number(id)).toBeGreaterThanOrEqual(1000);
      }
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
        expect(Number(`0x${field(set)}`)).toBe(0);
      expect([field('NoNewPrivs'), field('Seccomp')]).toEqual(['1', '2']);
    });

    test('[RS-14] nothing can be written but the workspace, /tmp and harmless devices', async () => {
      const found = await hand.print(
        "find / -path /proc -prune -o -writable ! -type l -print 2>/dev/null | grep -Ev '^/(workspace|tmp)(/|$)' | sort; true",
      );
      const harmless =
        /^\/dev\/(full|null|random|tty|urandom|zero|ptmx|pts(\/ptmx)?|shm|mqueue|stdin|stdout|stderr|fd)$/;
      const lines = found.trim().split('\n');
      expect(lines).toContain('/dev/null');
      expect(lines.filter((path) => !harmless.test(path))).toEqual([]);
      expect((await hand.exec('touch /usr/x /etc/x /opt/x /x')).exit_code).toBe(1);
    });

    test('[RS-14] no variable, file, or path of the host, and no secret of the server', async () => {
      const names = ['/tmp', '/var/tmp', '/dev/shm'].map((folder) => `${folder}/${SECRET}`);
      for (const name of names) writeFileSync(name, SECRET);
      const { stateDirectory } = served;
      const places = [
        ...names,
        stateDirectory,
        dataDirectoryOf(stateDirectory),
        '/work',
        '/var/run/docker.sock',
        '/run/docker.sock',
      ];
      const seen = await hand.print(
        `for place in ${places.join(' ')}; do [ -e "$place" ] && echo "$place"; done; true`,
      );
      for (const name of names) rmSync(name);
      expect(seen).toBe('');
      const found =
        await hand.print(`for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /etc/* /run/* /opt/hotcell/*; do
  [ -f $file ] && tr -d '\\0' < $file 2>/dev/null | grep -qF ${NEEDLE} && echo "$file"
done
env | grep -cF ${NEEDLE}; true`);
      expect(found).toBe('0\n');
      const variables = await hand.print('env | cut -d= -f1 | sort | tr "\\n" " "');
      expect(variables.trim().split(' ')).toEqual([
        'HOME',
        ...(way.driver === 'docker' ? ['HOSTNAME'] : []),
        'LANG',
        'PATH',
        'PWD',
        'SHLVL',
        'TMPDIR',
        '_',
      ]);
    });

    test('[RS-14] the way out of the workspace is shut for the server’s own eyes, too', async () => {
      await hand.print('ln -s /etc/passwd file; ln -s / root; ln -s ../../neighbour other; mkfifo pipe');
      const paths = ['file', 'root/etc/passwd', 'root', 'other/private.txt', '../neighbour/private.txt'];
      for (const path of [...paths, '/etc/passwd', '../../etc/passwd', 'pipe', 'file/../../x', 'a\u0000b']) {
        const { status, body } = await hand.ask('GET', `/fs?path=${encodeURIComponent(path)}`);
        expect({ path, status, coded: typeof body.code }).toEqual({ path, status, coded: 'string' });
        expect(status).toBeGreaterThanOrEqual(400);
        expect(status).toBeLessThan(500);
      }
      for (const path of ['root/tmp/evil', 'file', '../evil', '/evil', 'other/evil', 'pipe', '.', '']) {
        const answer = await hand.ask('POST', '/upload', { files: [{ path, content: 'evil' }] });
        // A link or a pipe is refused or replaced by the file, never written through.
        expect(['file', 'pipe'].includes(path) ? [200, 422] : [422]).toContain(answer.status);
      }
      expect(await hand.print('find / -name "evil*" -not -path "/proc/*" 2>/dev/null; true')).toBe('');
      expect(await neighbour.print('ls')).not.toContain('evil');
    });
  });

  describe('others', () => {
    test.each([
      ['another project', { project_id: 'another' }],
      ['the same project of another user', { project_id: 'neighbour', user_id: 'somebody' }],
    ])('[RS-14, RS-17] %s sees none of the files', async (_who, request) => {
      await using stranger = await door.create(request);
      expect(await stranger.print('ls -A /workspace')).toBe(`.home\n.tmp\n${request.project_id}\n`);
      expect(await stranger.print(`grep -rlF ${NEEDLE} /workspace /tmp /home /mnt 2>/dev/null; true`)).toBe(
        '',
      );
      expect(await stranger.ask('GET', '/fs?path=private.txt')).toMatchObject({ status: 404 });
      await neighbour.print('test -f private.txt');
    });

    test('[RS-14, RS-17] the same project of another tenant sees none of the files', async () => {
      const other = served.door(KEYS[1]);
      await using stranger = await other.create({ project_id: 'neighbour' });
      expect(await stranger.ask('GET', '/fs?path=private.txt')).toMatchObject({ status: 404 });
    });

    test('[RS-14] their processes can be neither seen nor signalled', async () => {
      const marker = makeMarker();
      const sleeper = await neighbour.begin(`sleep ${marker}`);
      await waitFor('it runs', () => listHost().includes(marker));
      expect(await hand.print('cat /proc/[0-9]*/cmdline | tr "\\0" " "')).not.toContain(marker);
      for (const signal of ['STOP', 'KILL', 'TERM']) {
        await hand.exec(
          `kill -${signal} -1; for pid in $(seq 2 400); do kill -${signal} $pid 2>/dev/null; done`,
          {
            timeout_s: 1,
          },
        );
      }
      const { state } = await neighbour.get<ExecReply>('GET', `/execs/${sleeper}`);
      expect(state).toBe('running');
      await neighbour.get('POST', `/execs/${sleeper}/kill`);
      await neighbour.result(sleeper);
    });

    test('[RS-14, SC-05] the session of another tenant is one that never was, on every route', async () => {
      const stranger = hand.at(served.door(KEYS[1]));
      const exec = await hand.begin('sleep 30');
      const routes: readonly [string, string, unknown?][] = [
        ['GET', ''],
        ['DELETE', ''],
        ['POST', '/keep-alive'],
        ['POST', '/pause'],
        ['POST', '/resume'],
        ['POST', '/exec', { command: 'true' }],
        ['GET', '/execs'],
        ['GET', `/execs/${exec}`],
        ['GET', `/execs/${exec}/output`],
        ['POST', `/execs/${exec}/stdin`, { data: 'x' }],
        ['POST', `/execs/${exec}/kill`],
        ['POST', '/kill'],
        ['POST', '/upload', { files: [] }],
        ['POST', '/sync', { files: [] }],
        ['POST', '/apply_patch', { diff: 'x' }],
        ['GET', '/changes'],
        ['GET', '/fs'],
        ['GET', '/archive'],
        ['GET', '/egress'],
        ['PUT', '/egress', { allow: [] }],
        ['GET', '/terminal'],
      ];
      const never = await served.door(KEYS[1]).ask('GET', `/session_${'0'.repeat(32)}`);
      for (const [method, path, body] of routes) {
        const answer = await stranger.ask(method, path, body);
        expect({ path, status: answer.status, body: answer.body }).toEqual({
          path,
          status: 404,
          body: never.body,
        });
      }
      expect(await served.door(KEYS[1]).list()).toEqual([]);
      expect((await hand.get<ExecReply>('GET', `/execs/${exec}`)).state).toBe('running');
      await hand.get('POST', '/kill');
      await hand.get('POST', `/execs/${exec}/kill`);
    });
  });

  describe('the agent', () => {
    test('[RS-14] its memory, its streams and its marker are out of reach', async () => {
      const looked = await hand.print(`for pid in 1 $PPID; do
  for file in fd/0 fd/1 fd/2 fd/3 mem maps environ root/ cwd/ auxv; do
    head -c 1 /proc/$pid/$file >/dev/null 2>&1 && echo "read $pid/$file"
  done
  ls /proc/$pid/fd 2>/dev/null
  for number in 0 1 2 3 4 5 6 7 8 9; do (echo x >/proc/$pid/fd/$number) 2>/dev/null && echo "wrote $pid/fd/$number"; done
done
for file in /run/hotcell/*; do
  (exec 3<>$file) 2>/dev/null && echo "opened $file"
  chmod 666 $file 2>/dev/null && echo "changed $file"
  rm -f $file 2>/dev/null && [ ! -e $file ] && [ -e /run/hotcell/in ] && echo "removed $file"
done
true`);
      expect(looked).toBe('');
    });

    test('[RS-14] its words in the output of a program are output', async () => {
      const forged = `perl -e 'for $id (0 .. 9) { for (qw(X P L U R H)) { print pack("a1NN", $_, $id, 6) . "wait=0" } } exit 3'`;
      const reply = await hand.exec(forged);
      expect(reply).toMatchObject({ exit_code: 3, stdout_bytes: 10 * 6 * 15, end: { reason: 'exit' } });
    });

    test.each(['STOP', 'KILL', 'TERM', 'HUP'])(
      '[RS-14] SIG%s to everybody ends the sender’s own at most',
      async (signal) => {
        const reply = await hand.exec(`kill -${signal} -1; sleep 0.2; echo over`, { timeout_s: 3 });
        expect(['exit', 'signal', 'timeout', 'cell_lost', 'killed']).toContain(reply.end.reason);
      },
    );

    test.each([
      ['a folder of the system', 'printf /etc'],
      ['a name that is no path', "printf 'nowhere'"],
      ['a way up', "printf '../../..'"],
      ['a folder that is not there', "printf '/nowhere/at/all'"],
      ['a NUL', "printf '/tmp\\0/etc'"],
      ['several lines', "printf '/tmp\\nX-Injected: 1\\n'"],
      ['no text at all', "printf '/tmp/\\377\\376'"],
      ['control characters', "printf '/tmp/\\033[2J'"],
      ['far too much', "head -c 60000 /dev/zero | tr '\\0' /"],
      ['nothing', 'true'],
    ])('[RS-14, RS-03] a false report of the folder hurts nobody: %s', async (_what, report) => {
      const reply = await hand.exec(`trap - EXIT; { ${report}; } >&19`, { timeout_s: 10 });
      expect(reply.exit_code).toBe(0);
      const { cwd } = await hand.detail();
      // Names of folders may have any character but one.
      expect(cwd).toMatch(/^\/[^\0]{0,4095}$/);
      const next = await hand.exec('pwd');
      expect(next).toMatchObject({ exit_code: 0, end: { reason: 'exit' } });
      expect([`${cwd}\n`, `${hand.made.workspace_path}\n`]).toContain(next.stdout);
      // Files are of the workspace, wherever the shell is.
      await hand.get('POST', '/upload', { files: [{ path: 'here', content: 'x' }] });
      expect(await hand.print(`cat ${hand.made.workspace_path}/here`)).toBe('x');
      await hand.print('true', { reset_cwd: true });
    });
  });

  describe('our helpers in the cell', () => {
    /** Writes into the output of every process that it can open, again and again. */
    const FORGE = `while :; do for pipe in /proc/[0-9]*/fd/1; do
[ $pipe = /proc/$$/fd/1 ] || head -c 200 /dev/urandom > $pipe & done; wait; done 2>/dev/null`;

    test.each([
      ['killed', 'while :; do kill -9 $(pgrep -f "[h]otcell/guest/(files|egress)"); done 2>/dev/null'],
      ['lied for', FORGE],
    ])('[RS-14] they are %s without end: errors for this session, and no harm', async (_how, attack) => {
      const attacker = await hand.begin(attack);
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.all([
          hand.ask('POST', '/upload', { files: [{ path: 'f', content: `${round}` }] }),
          hand.ask('GET', '/fs?path=.'),
          hand.ask('GET', '/changes'),
        ]);
        // 503 is for what the session does to itself; never a defect of ours.
        for (const { status, body } of answers)
          expect({ status, code: body.code }).not.toMatchObject({ code: 'INTERNAL' });
      }
      await neighbour.expectUsable();
      await hand.get('POST', `/execs/${attacker}/kill`);
      await hand.result(attacker);
      await waitFor('it is as before', async () => (await hand.ask('GET', '/fs?path=.')).status === 200);
    });

    test('[RS-14, RS-15] whoever takes the place of the relay deceives his own programs only', async () => {
      await using online = await door.create({ network: ['npm'] });
      const fake = await online.begin(`perl -e '
use Socket; socket S, PF_INET, SOCK_STREAM, 0; setsockopt S, SOL_SOCKET, SO_REUSEADDR, 1;
for (;;) { system "pkill -9 -f [h]otcell/guest/egress"; last if bind S, sockaddr_in(3128, INADDR_LOOPBACK) }
listen S, 9; print "bound\\n"; $| = 1; while (accept C, S) { print C "HTTP/1.1 200 OK\\r\\n\\r\\nfake"; close C }'`);
      await waitFor('it listens', async () => (await online.output(fake)).includes('bound'));
      const before = await online.egress();
      expect(await online.print('exec 3<>/dev/tcp/127.0.0.1/3128; cat <&3')).toContain('fake');
      expect(await online.egress()).toMatchObject({
        allowed_count: before.allowed_count,
        refused_count: before.refused_count,
      });
      await online.expectUsable();
      await online.get('POST', `/execs/${fake}/kill`);
    });
  });
});

/** Command lines of all processes of the host. */
function listHost(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      } catch {
        return '';
      }
    })
    .join('\n');
}
