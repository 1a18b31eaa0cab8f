import { execFileSync } from 'node:child_process';
import { lstatSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApplyPatchReply, ChangesReply, SyncReply } from '../../../src/wire/session-files.ts';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import { tmpdirOnTmpfs, type TestServer } from '../../support/server.ts';
import { openSession, startSessionServer, stopSessionServer } from '../../support/sessions.ts';

/** Swaps a folder for a link out of the workspace and back, as fast as it can. */
const SWAP =
  'while (1) { rename "dir", "real"; symlink "/tmp/outside", "dir"; unlink "dir"; rename "real", "dir" }';

describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startSessionServer(way);
  });
  // One of the tests makes dependencies, which stay.
  afterAll(() => stopSessionServer(server, { keepsVolumes: true }));

  describe('changes', () => {
    test('[RS-10] since a cursor: what was added, modified and deleted, once', async () => {
      await using session = await openSession(server);
      const changes = async (since?: string): Promise<ChangesReply> =>
        (await session.get(`/changes${since === undefined ? '' : `?since=${since}`}`)).as(ChangesReply);
      await session.print('mkdir d; echo 1 > d/one; echo 2 > two; echo 3 > three');
      const first = await changes();
      expect(first.changes.map(({ path, change }) => `${change} ${path}`)).toEqual([
        'added d/one',
        'added three',
        'added two',
      ]);
      expect((await changes(first.cursor)).changes).toEqual([]);
      // The same size and the same time: content decides.
      await session.print(
        'echo 9 > d/one; rm two; chmod 755 three; mkdir node_modules; touch node_modules/x new',
      );
      const second = await changes(first.cursor);
      expect(second.changes).toEqual([
        { path: 'd/one', change: 'modified', size: 2, mode: 0o644 },
        { path: 'new', change: 'added', size: 0, mode: 0o644 },
        { path: 'three', change: 'modified', size: 2, mode: 0o755 },
        { path: 'two', change: 'deleted', size: 2, mode: 0o644 },
      ]);
      expect((await changes(first.cursor)).changes).toEqual(second.changes);
      expect((await changes(second.cursor)).changes).toEqual([]);
      const { refusal } = await session.get('/changes?since=nonsense');
      expect(refusal).toMatchObject({ status: 422, field: 'since' });
    });

    test('[RS-10] a command tells them when it is asked, with the content of small files', async () => {
      await using session = await openSession(server);
      await session.print('echo old > old; echo same > same');
      const command =
        'echo new > old; printf "\\377" > bytes; head -c 100000 /dev/zero > large; ln -s / link';
      const { changed_files: changed } = await session.exec({ command, report_changed_files: true });
      expect(changed).toEqual([
        { path: 'bytes', change: 'added', size: 1, content: '/w==', encoding: 'base64' },
        { path: 'large', change: 'added', size: 100_000 },
        { path: 'link', change: 'added', size: 1 },
        { path: 'old', change: 'modified', size: 4, content: 'new\n', encoding: 'utf8' },
      ]);
      expect((await session.exec('echo x > y')).changed_files).toBeUndefined();
    });
  });

  test('[RS-11] the archive holds everything, as a real tar sees it', async () => {
    await using session = await openSession(server);
    const long = `${'long/'.repeat(40)}file`;
    await session.print(
      `mkdir -p $(dirname ${long}) empty; echo deep > ${long}; head -c 3000000 /dev/urandom > large; : > none; ln -s /etc/passwd link; ln -s ${'x'.repeat(150)} longlink; mkfifo fifo; chmod 751 none; echo ü > 'ü "x"'; echo one > 'a\\..\\b'`,
    );
    const hash = (await session.print('sha256sum < large')).slice(0, 64);
    const response = await fetch(`${server.url}${session.path}/archive`);
    expect(response.headers.get('content-type')).toBe('application/x-tar');
    const folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-archive-'));
    try {
      writeFileSync(join(folder, 'archive.tar'), Buffer.from(await response.arrayBuffer()));
      execFileSync('tar', ['-xpf', 'archive.tar', '--one-top-level=out', '--no-same-owner'], { cwd: folder });
      const at = (path: string): string => join(folder, 'out', path);
      const hostHash = execFileSync('sha256sum', [at('large')], { encoding: 'utf8' });
      expect(hostHash.slice(0, 64)).toBe(hash);
      expect([readFileSync(at(long), 'utf8'), readFileSync(at('ü "x"'), 'utf8')]).toEqual(['deep\n', 'ü\n']);
      expect(readFileSync(at('a\\..\\b'), 'utf8')).toBe('one\n');
      expect([readlinkSync(at('link')), readlinkSync(at('longlink'))]).toEqual([
        '/etc/passwd',
        'x'.repeat(150),
      ]);
      expect([lstatSync(at('empty')).isDirectory(), lstatSync(at('none')).mode & 0o777]).toEqual([
        true,
        0o751,
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  describe('apply_patch', () => {
    const GOOD = '--- a/one\n+++ b/one\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\n';
    const CREATES = '--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+hello\n';
    const DELETES = '--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n';

    test('[RS-08] changes, makes and removes files', async () => {
      await using session = await openSession(server);
      await session.print('seq 3 > one; chmod 755 one; echo bye > gone');
      const reply = await session.post('/apply_patch', { diff: GOOD + CREATES + DELETES });
      expect(reply.as(ApplyPatchReply)).toEqual({
        success: true,
        results: [
          { path: 'one', status: 'applied' },
          { path: 'new/file', status: 'created' },
          { path: 'gone', status: 'deleted' },
        ],
      });
      expect(await session.print('cat one new/file; stat -c %a one; ls')).toBe(
        '1\ntwo\n3\nhello\n755\nnew\none\n',
      );
    });

    test.each([
      ['context that is not there', '--- a/other\n+++ b/other\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n'],
      ['a file that is not there', '--- a/none\n+++ b/none\n@@ -1 +1 @@\n-y\n+z\n'],
      ['a file that is there already', '--- /dev/null\n+++ b/other\n@@ -0,0 +1 @@\n+z\n'],
      ['a path out of the workspace', '--- a/../../tmp/x\n+++ b/../../tmp/x\n@@ -0,0 +1 @@\n+z\n'],
      ['a link', '--- a/link\n+++ b/link\n@@ -1 +1 @@\n-secret\n+z\n'],
      ['a hunk that is shorter than it says', '--- a/other\n+++ b/other\n@@ -1,3 +1,3 @@\n-other\n+z\n'],
    ])('[RS-08] all or nothing: %s', async (_name, bad) => {
      await using session = await openSession(server);
      await session.print(
        'seq 3 > one; echo bye > gone; echo other > other; echo secret > /tmp/s; ln -s /tmp/s link',
      );
      const { refusal } = await session.post('/apply_patch', { diff: GOOD + CREATES + bad + DELETES });
      expect([422, 409, 404]).toContain(refusal.status);
      expect(await session.print('cat one gone other /tmp/s; ls')).toBe(
        '1\n2\n3\nbye\nother\nsecret\ngone\nlink\none\nother\n',
      );
    });
  });

  test('[RS-08, RS-09, RS-11] links swapped while files are written, read and removed lead nowhere', async () => {
    await using session = await openSession(server);
    await session.print(
      'mkdir dir /tmp/outside; echo inside > dir/secret; echo outside > /tmp/outside/secret; echo outside > /tmp/outside/x',
    );
    const before = await session.print('cd /tmp/outside; stat -c "%n %i %s %y %z" . *; cd - >/dev/null');
    const swapping = await session.begin(`perl -e '${SWAP}'`);
    const seen = { written: 0, read: 0, refused: 0, synced: 0 };
    const isIn = async (
      task: Promise<{ status: number; body: unknown }>,
      kind: 'written' | 'read' | 'synced',
    ) => {
      const { status, body } = await task;
      seen[status < 300 ? kind : 'refused'] += 1;
      // A folder that vanished between two looks is a refusal, never a failure of ours.
      expect({ body, isExpected: [200, 404, 409, 422].includes(status) }).toEqual({ body, isExpected: true });
      return body;
    };
    for (let round = 0; round < 60; round += 1) {
      await isIn(session.post('/upload', { files: [{ path: 'dir/x', content: 'evil' }] }), 'written');
      const read = await isIn(session.get('/fs?path=dir/secret'), 'read');
      expect(JSON.stringify(read)).not.toContain('outside');
      await isIn(session.post('/sync', { files: [{ path: 'dir/y', content: 'evil' }] }), 'synced');
      await isIn(session.post('/sync', { files: [] }), 'synced');
      await isIn(session.get('/fs?path=dir'), 'read');
    }
    await session.post(`/execs/${swapping}/kill`);
    expect(await session.print('cd /tmp/outside; stat -c "%n %i %s %y %z" . *; cd - >/dev/null')).toBe(
      before,
    );
    // Otherwise there was no race.
    expect(Object.entries(seen).filter(([, count]) => count === 0)).toEqual([]);
    // And it is as usable as before.
    await session.print('rm -rf dir real; mkdir dir');
    expect(
      (await session.post('/sync', { files: [{ path: 'dir/z', content: 'z' }] })).as(SyncReply).synced,
    ).toBe(1);
  });
});
