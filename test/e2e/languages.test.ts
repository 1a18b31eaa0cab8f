import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LanguagesReply } from '../../src/wire/execute.ts';
import { BASE_IMAGE } from '../support/base-image.ts';
import { runCode, startServer, stopClean } from '../support/live-server.ts';
import { USUAL_WAYS, describeEach, describeOnce } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const ONLY_ADDED = { python: false, ruby: false, javascript: false, typescript: false };
/** Drivers that use images need one; the others do not mind. */
const image = BASE_IMAGE;
const PERL = { extension: 'pl', command: ['perl', '{filepath}'], image };
const AWK = { extension: '.awk', command: ['awk', '-f', '{filepath}', '--'], image };

async function listLanguages(server: TestServer): Promise<LanguagesReply['languages']> {
  return ((await (await fetch(`${server.url}/languages`)).json()) as LanguagesReply).languages;
}

describeEach(USUAL_WAYS, (way) => {
  describe('languages added by a file alone', () => {
    let server: TestServer;
    const folder = mkdtempSync(join(tmpdir(), 'hotcell-languages-'));
    beforeAll(async () => {
      const missing = { extension: 'zz', command: ['no-such-interpreter', '{filepath}'], image };
      const file = join(folder, 'hotcell.yaml');
      // JSON is YAML, too.
      writeFileSync(file, JSON.stringify({ languages: { ...ONLY_ADDED, perl: PERL, awk: AWK, missing } }));
      server = await startServer({ way, args: ['--config', file] });
    });
    afterAll(async () => {
      rmSync(folder, { recursive: true });
      // One of them can never be ready, so there is nothing to wait for.
      await stopClean(server, 0);
    });

    test('[CX-02] GET /languages lists them, and the removed ones are gone', async () => {
      const languages = await listLanguages(server);
      expect(languages.map(({ name }) => name).toSorted()).toEqual(['awk', 'bash', 'missing', 'perl']);
      expect(languages).toContainEqual(
        expect.objectContaining({
          name: 'perl',
          extension: 'pl',
          route: '/execute/perl',
          available: true,
          problem: null,
        }),
      );
      expect(await server.execute('python', { code: '' })).toMatchObject({
        status: 404,
        body: { code: 'LANGUAGE_UNKNOWN' },
      });
    });

    test('[CX-02, CX-03] perl has a route and everything that belongs to it', async () => {
      const code = 'print "out @ARGV $ENV{GREETING} ", scalar(<STDIN>); print STDERR "err\\n"; die "boom";\n';
      const reply = await runCode(server, 'perl', {
        code,
        args: ['a', 'b c'],
        env: { GREETING: 'hi' },
        stdin: 'in\n',
      });
      expect(reply).toMatchObject({ stdout: 'out a b c hi in\n', language: 'perl' });
      expect(reply.image_name).toBe(way.driver === 'docker' ? image : 'host:perl');
      expect(reply.exit_code).not.toBe(0);
      expect(reply.file_path).toMatch(/^\/tmp\/exec_.*\.pl$/);
      expect(reply.stderr).toContain(`boom at ${reply.file_path} line 1`);
    });

    test('[CX-02, CX-05] limits hold for them as well', async () => {
      expect(
        await runCode(server, 'perl', { code: '$|=1; print "x"; 1 while 1;', timeout_ms: 500 }),
      ).toMatchObject({
        stdout: 'x',
        exit_code: 124,
      });
    });

    test('[CX-02] a command that ends in its own options works', async () => {
      const reply = await runCode(server, 'awk', {
        code: '{ sum += $1 } END { print sum }',
        stdin: '1\n2\n3\n',
      });
      expect(reply).toMatchObject({ stdout: '6\n', exit_code: 0 });
    });

    test('[CX-08, CX-15] one without an interpreter answers for itself and leaves the others alone', async () => {
      const { status, body } = await server.execute('missing', { code: '' });
      expect({ status, code: body.code, exitCode: body.exit_code }).toMatchObject({
        exitCode: expect.any(Number),
      });
      const listed = (await listLanguages(server)).find(({ name }) => name === 'missing');
      expect([status === 503 || body.exit_code === 127, listed?.name]).toEqual([true, 'missing']);
      expect(await runCode(server, 'bash', 'echo fine')).toMatchObject({ stdout: 'fine\n' });
    });
  });
});

describeOnce('languages added by the environment alone', () => {
  test('[CX-02] JSON in HOTCELL_LANGUAGES', async () => {
    const languages = JSON.stringify({ ...ONLY_ADDED, perl: PERL });
    const server = await startServer({ env: { HOTCELL_LANGUAGES: languages } });
    expect((await listLanguages(server)).map(({ name }) => name).toSorted()).toEqual(['bash', 'perl']);
    expect(await runCode(server, 'perl', 'print 6 * 7')).toMatchObject({ stdout: '42', exit_code: 0 });
    await stopClean(server);
  });
});
