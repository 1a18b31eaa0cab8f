import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HttpRunnerClient } from '../../../src/client/http-runner-client.ts';
import { SyncReply, UploadReply } from '../../../src/wire/session-files.ts';
import { OCI_FRESH, describeEach } from '../../support/served-by.ts';
import type { TestServer } from '../../support/server.ts';
import {
  openSession,
  startSessionServer,
  stopSessionServer,
  type TestSession,
} from '../../support/sessions.ts';

const READ_BYTES = 64 * 1024;
const ALL_VALUES = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
const sha256 = (content: string): string => createHash('sha256').update(content).digest('hex');

/** What a workspace has before somebody tries to leave it. */
const TRAPS = [
  'mkdir -p /tmp/outside folder deep/down',
  'echo outside > /tmp/outside/secret',
  'ln -s /tmp/outside out',
  'ln -s /tmp/outside/secret link',
  'ln -s ../../tmp/outside deep/down/out',
  'ln -s nowhere dangling',
  'ln -s . here',
  'mkfifo fifo',
  'echo plain > plain',
  'touch shut && mkdir shutfolder && chmod 0 shut shutfolder',
].join(' && ');

// What files do in the cells of an engine is in test/contract/workspace.
describeEach([OCI_FRESH], (way) => {
  let server: TestServer;
  let session: TestSession;
  let client: HttpRunnerClient;
  beforeAll(async () => {
    server = await startSessionServer(way, {
      args: ['--set', `sessions.readBytes=${READ_BYTES}`],
      // For ten thousand files, each with a block of its own.
      env: { HOTCELL_SESSIONS_LIMITS_DISK_BYTES: '128m' },
    });
    session = await openSession(server);
    await session.print(TRAPS);
    client = new HttpRunnerClient({ baseUrl: server.url });
  });
  afterAll(() => stopSessionServer(server));

  describe('upload', () => {
    test('[RS-08] text, bytes and modes arrive as they are, folders by themselves', async () => {
      await using own = await openSession(server);
      const files = [
        { path: 'src/main.ts', content: 'console.log("ü");\n' },
        { path: 'src/deep/er/bytes', content: ALL_VALUES.toString('base64'), encoding: 'base64' },
        { path: 'run.sh', content: '#!/bin/bash\necho ran\n', mode: '755' },
        { path: 'secret', content: '', mode: 0o600 },
        { path: 'sp ace\'\n"$(touch ran)', content: 'odd name' },
      ];
      const answer = await own.post('/upload', { files });
      expect(answer.as(UploadReply)).toEqual({ synced: 5 });
      expect(await own.print('./run.sh; stat -c %a run.sh secret src/main.ts; ls -A | wc -l')).toBe(
        'ran\n755\n600\n644\n5\n',
      );
      const hash = createHash('sha256').update(ALL_VALUES).digest('hex');
      expect(await own.print('sha256sum < src/deep/er/bytes; cat src/main.ts')).toBe(
        `${hash}  -\nconsole.log("ü");\n`,
      );
      // Written over, the mode stays unless another one is asked for.
      await own.post('/upload', { files: [{ path: 'run.sh', content: '#!/bin/bash\necho again\n' }] });
      expect(await own.print('./run.sh')).toBe('again\n');
    });

    test('[RS-08, RS-11] a backslash is a letter of a name, as for every program in the cell', async () => {
      await using own = await openSession(server);
      const path = 'd/..\\..\\a\\n';
      const read = async (): Promise<unknown> => (await own.get(`/fs?path=${encodeURIComponent(path)}`)).body;
      await own.post('/upload', { files: [{ path, content: 'up\n' }] });
      expect(await own.print(String.raw`find . -type f -printf '%P\n'; cat 'd/..\..\a\n'`)).toBe(
        `${path}\nup\n`,
      );
      const quoted = path.replaceAll('\\', String.raw`\\`);
      const diff = `--- "a/${quoted}"\n+++ "b/${quoted}"\n@@ -1 +1 @@\n-up\n+patched\n`;
      await own.post('/apply_patch', { diff });
      expect(await read()).toMatchObject({ path, content: 'patched\n' });
      expect(await client.sync(own.id, [{ path, content: 'synced' }])).toMatchObject({ synced: 1 });
      expect(await read()).toMatchObject({ path, content: 'synced' });
    });

    test.each([
      ['..', 422],
      ['../x', 422],
      ['a/../../x', 422],
      ['/tmp/x', 422],
      ['', 422],
      ['.', 422],
      ['a/./b', 422],
      ['a//b', 422],
      ['a/', 422],
      ['a\0b', 422],
      ['\ud800', 422],
      ['x'.repeat(5000), 422],
      ['x'.repeat(300), 422],
      ['out/x', 422],
      ['deep/down/out/x', 422],
      ['here/x', 422],
      ['link', 422],
      ['dangling', 422],
      ['folder', 422],
      ['fifo', 422],
      ['plain/x', 422],
      ['shutfolder/x', 422],
    ])('[RS-08] the path %j is refused, and then nothing of that upload is written', async (path, status) => {
      const files = [
        { path: 'good/before', content: 'x' },
        { path: 'plain', content: 'changed' },
        { path, content: 'evil' },
        { path: 'after', content: 'x' },
      ];
      const { refusal } = await session.post('/upload', { files });
      expect(refusal).toMatchObject({
        status,
        code: expect.stringMatching(/^(FILE_REFUSED|INVALID_REQUEST)$/),
      });
      expect(
        await session.print('cat plain; ls /tmp/outside; cat link; ls -d good after 2>/dev/null || :'),
      ).toBe('plain\nsecret\noutside\n');
      expect(await session.print('find . /tmp -name "*.tmp*" -o -name ".hotcell*" 2>/dev/null | head')).toBe(
        '',
      );
    });

    test.each([
      [
        [
          { path: 'twice', content: 'a' },
          { path: 'twice', content: 'b' },
        ],
      ],
      [
        [
          { path: 'both', content: 'a' },
          { path: 'both/x', content: 'b' },
        ],
      ],
      [[{ path: 'bad64', content: '?', encoding: 'base64' }]],
      [[{ path: 'mode', content: '', mode: '4755' }]],
      [[{ path: 'mode', content: '', mode: 0o4755 }]],
      [[{ path: 'none' }]],
    ])('[RS-08] %j is refused', async (files) => {
      const { refusal } = await session.post('/upload', { files });
      expect(refusal).toMatchObject({ status: 422, code: 'INVALID_REQUEST' });
      expect(refusal.field).toMatch(/^files\[[01]\]/);
    });
  });

  describe('sync', () => {
    const manifest = (files: Readonly<Record<string, string>>) => ({
      files: Object.entries(files).map(([path, content]) => ({ path, hash: sha256(content) })),
    });

    test('[RS-09] the manifest says what is needed; what is there does not travel; what is gone goes', async () => {
      await using own = await openSession(server);
      const files = { 'a.txt': 'a', 'src/b.txt': 'b', 'src/c.txt': 'c' };
      const needed = (await own.post('/sync', manifest(files))).as(SyncReply);
      expect(needed).toEqual({ synced: 0, skipped: 0, deleted: 0, needed: Object.keys(files) });
      const withContent = Object.entries(files).map(([path, content]) => ({
        path,
        content,
        hash: sha256(content),
      }));
      expect((await own.post('/sync', { files: withContent })).as(SyncReply)).toEqual({
        synced: 3,
        skipped: 0,
        deleted: 0,
        needed: [],
      });
      expect(await own.print('cat a.txt src/*; echo own > mine; echo changed > a.txt')).toBe('abc');
      const changed = { 'a.txt': 'a', 'src/b.txt': 'B' };
      expect((await own.post('/sync', manifest(changed))).as(SyncReply)).toEqual({
        synced: 0,
        skipped: 0,
        deleted: 0,
        needed: ['a.txt', 'src/b.txt'],
      });
      // Nothing is removed before everything is there to take its place.
      const contents = Object.entries(changed).map(([path, content]) => ({ path, content }));
      expect((await own.post('/sync', { files: contents })).as(SyncReply)).toEqual({
        synced: 2,
        skipped: 0,
        deleted: 1,
        needed: [],
      });
      // What commands made is theirs.
      expect(await own.print('find -type f | sort')).toBe('./a.txt\n./mine\n./src/b.txt\n');
    });

    test('[RS-09] content that is not what its hash says is refused, and nothing is written', async () => {
      await using own = await openSession(server);
      const files = [
        { path: 'good', content: 'good' },
        { path: 'bad', content: 'bad', hash: sha256('other') },
      ];
      expect((await own.post('/sync', { files })).refusal).toMatchObject({ status: 422 });
      expect(await own.print('ls')).toBe('');
    });

    test('[RS-09, RS-20] 10,000 unchanged files cost one request', async () => {
      await using own = await openSession(server);
      const files = Array.from({ length: 10_000 }, (_, index) => ({
        path: `d${index % 100}/f${index}.txt`,
        content: `content of ${index}`,
      }));
      expect(await client.sync(own.id, files)).toMatchObject({ synced: 10_000 });
      const body = manifest(Object.fromEntries(files.map(({ path, content }) => [path, content])));
      const again = (await own.post('/sync', body)).as(SyncReply);
      expect(again).toEqual({ synced: 0, skipped: 10_000, deleted: 0, needed: [] });
      // One that a command changed, however it hides it, is seen.
      await own.print(
        'touch -r d7/f7.txt /tmp/time; echo -n CONTENT of 7 > d7/f7.txt; touch -r /tmp/time d7/f7.txt',
      );
      expect((await own.post('/sync', body)).as(SyncReply).needed).toEqual(['d7/f7.txt']);
      expect(await client.sync(own.id, files.slice(0, 9_000))).toMatchObject({ deleted: 1_000, synced: 1 });
      expect(await own.print('find -type f | wc -l; cat d7/f7.txt')).toBe('9000\ncontent of 7');
    });
  });

  describe('read', () => {
    test('[RS-11] text as text, bytes as base64, a folder as its entries', async () => {
      await using own = await openSession(server);
      await own.print(
        `mkdir -p d/e; printf 'ü\\r\\n' > d/text; printf 'a\\0' > d/nul; printf '\\377' > d/bytes; : > d/empty; ln -s / d/link; mkfifo d/fifo; chmod 750 d/text`,
      );
      const read = async (path: string): Promise<unknown> => (await own.get(`/fs?path=${path}`)).body;
      expect(await read('d/text')).toEqual({
        kind: 'file',
        path: 'd/text',
        content: 'ü\r\n',
        encoding: 'utf8',
        size: 4,
        mode: 0o750,
      });
      expect(await read('d/bytes')).toMatchObject({ content: '/w==', encoding: 'base64', size: 1 });
      // Text has no NUL.
      expect(await read('d/nul')).toMatchObject({ content: 'YQA=', encoding: 'base64', size: 2 });
      expect(await read('d/empty')).toMatchObject({ content: '', encoding: 'utf8', size: 0 });
      const { entries } = (await read('d')) as { entries: { name: string; kind: string }[] };
      expect(entries.map(({ name, kind }) => `${name} ${kind}`).toSorted()).toEqual(
        [
          'bytes file',
          'e folder',
          'empty file',
          'fifo other',
          'link link',
          'nul file',
          'text file',
        ].toSorted(),
      );
      expect(await read('.')).toMatchObject({
        kind: 'folder',
        entries: [expect.objectContaining({ name: 'd' })],
      });
    });

    test.each([
      ['link', 422, 'FILE_REFUSED'],
      ['out', 422, 'FILE_REFUSED'],
      ['out/secret', 422, 'FILE_REFUSED'],
      ['here/plain', 422, 'FILE_REFUSED'],
      ['deep/down/out/secret', 422, 'FILE_REFUSED'],
      ['fifo', 422, 'FILE_REFUSED'],
      ['shut', 422, 'FILE_REFUSED'],
      ['../.home', 422, 'FILE_REFUSED'],
      ['/etc/passwd', 422, 'FILE_REFUSED'],
      ['a\0b', 422, 'INVALID_REQUEST'],
      ['nowhere', 404, 'FILE_NOT_FOUND'],
      ['nowhere/at/all', 404, 'FILE_NOT_FOUND'],
    ])('[RS-11] %j is refused', async (path, status, code) => {
      const { refusal } = await session.get(`/fs?path=${encodeURIComponent(path)}`);
      expect(refusal).toMatchObject({ status, code });
    });

    test('[RS-11] a file larger than a reply may be is refused, not cut', async () => {
      await session.print(
        `head -c ${READ_BYTES} /dev/zero > large; head -c ${READ_BYTES + 1} /dev/zero > larger`,
      );
      expect(await client.readFile(session.id, 'large')).toMatchObject({ size: READ_BYTES });
      const { refusal } = await session.get('/fs?path=larger');
      expect(refusal).toMatchObject({ status: 413, code: 'FILE_TOO_LARGE' });
    });
  });
});
