import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import { ExecuteReply, HealthReply } from '../../src/wire/execute.ts';
import { expectServes, runCode, settle, startServer, stopClean } from '../support/live-server.ts';
import { PROGRAMS } from '../support/programs.ts';
import { USUAL_WAYS, FRESH_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const UUID = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

describeEach(USUAL_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
  });
  afterAll(() => stopClean(server));

  describe.each(PROGRAMS)('$language', (programs) => {
    const { language, extension } = programs;

    test('[CX-01, CX-02, CX-03, SC-04] the answer has every field', async () => {
      const { status, headers, body } = await server.execute(language, { code: programs.bothStreams });
      expect(status).toBe(200);
      expect(headers.get('content-type')).toMatch(/^application\/json/);
      // Strict: a field too many would be a promise that nobody has written down.
      expect(ExecuteReply.strict().parse(body)).toEqual(body);
      expect(body).toMatchObject({ stdout: 'out\n', stderr: 'err\n', exit_code: 0, language });
      expect(body.container_id).toMatch(/^[0-9a-f]{12}$/);
      expect(body.file_path).toMatch(new RegExp(`^/tmp/exec_${UUID}\\.${extension}$`));
      expect(body.image_name).toMatch(way.imageName(language));
      expect(body.memory_used_mb).toBeGreaterThan(0);
      expect(body.memory_used_mb).toBeLessThan(256);
      expect(body.execution_time_ms).toBeGreaterThan(0);
      expect(body.cpu_percent).toBeGreaterThan(0);
      expect(body.receipt).toMatchObject({
        outcome: 'exited',
        limit_hit: null,
        stdout_bytes: 4,
        stderr_bytes: 4,
      });
      expect(body.receipt.isolation).toMatchObject({
        driver: way.driver,
        runtime: expect.stringMatching(way.runtime),
      });
      expect(Object.keys(body.receipt.isolation.enforcement).toSorted()).toEqual(PROMISES.toSorted());
      expect(Object.values(body.receipt.isolation.enforcement)).not.toContain('nobody');
    });

    test('[CX-03, CX-04] a failure is a result and names the file and the line', async () => {
      const reply = await runCode(server, language, programs.failsInLine3);
      expect(reply.exit_code).not.toBe(0);
      expect(reply.stderr).toMatch(
        new RegExp(`${reply.file_path.replaceAll('.', '\\.')}(?::|", line |: line )3\\b`),
      );
    });

    test('[CX-04] a syntax error is a result and names the file', async () => {
      const reply = await runCode(server, language, programs.syntaxError);
      expect(reply.exit_code).not.toBe(0);
      expect(reply.stderr).toContain(reply.file_path);
      expect(reply.receipt.outcome).toBe('exited');
    });

    test('[CX-04] the exit code is the program’s', async () => {
      const reply = await runCode(server, language, programs.exit7);
      expect(reply).toMatchObject({ exit_code: 7, receipt: { outcome: 'exited', limit_hit: null } });
    });

    test('[CX-04] a signal is told as 128 + n, and SIGKILL alone is not taken for a limit', async () => {
      const reply = await runCode(server, language, programs.killsItself);
      expect(reply).toMatchObject({ exit_code: 137, receipt: { outcome: 'signalled', limit_hit: null } });
      expect(reply.stderr).not.toContain('memory');
    });

    test('[CX-07] empty code runs and prints nothing', async () => {
      for (const code of ['', '\n']) {
        expect(await runCode(server, language, code)).toMatchObject({ stdout: '', stderr: '', exit_code: 0 });
      }
    });

    test('[CX-07] stdin, arguments, variables and files arrive byte by byte', async () => {
      const raw = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
      const reply = await runCode(server, language, {
        code: programs.showsInputs,
        stdin: 'line 1\nünïcode €\ttab',
        args: ['--flag', 'two words', '', 'quote\'s "double" $HOME `id` *'],
        env: { GREETING: '$(id) "hello" \\n ünï' },
        files: [
          { path: 'data/deep/text.txt', content: 'nested €' },
          { path: 'raw.bin', content: raw.toString('base64'), encoding: 'base64' },
        ],
      });
      expect(reply.stderr).toBe('');
      expect(reply.stdout.split('\n')).toEqual([
        'line 1',
        'ünïcode €\ttab',
        '--flag|two words||quote\'s "double" $HOME `id` *',
        '$(id) "hello" \\n ünï',
        'nested €',
        raw.toString('hex'),
        '',
      ]);
    });
  });

  test('[CX-15] health tells the state of every language', async () => {
    await settle(server);
    const health = await server.health();
    expect(HealthReply.strict().parse(health)).toEqual(health);
    expect(health).toMatchObject({
      status: 'ok',
      containers: Object.fromEntries(PROGRAMS.map(({ language }) => [language, 'running'])),
      driver: way.driver,
      driver_reason: 'as configured',
      runtime: expect.stringMatching(way.runtime),
      strategy: way.strategy,
      problem: null,
    });
    expect(health.uptime_seconds).toBeGreaterThanOrEqual(0);
  });

  test('[CX-15] health stays ok while cells are in use and being replaced', async () => {
    const busy = Array.from({ length: 4 }, () => runCode(server, 'bash', 'sleep 0.3'));
    const statuses = new Set<string>();
    const watch = async (): Promise<void> => {
      for (let look = 0; look < 20; look++) statuses.add((await server.health()).status);
    };
    await Promise.all([...busy, watch()]);
    // One after the other, faster than some drivers boot.
    for (let round = 0; round < 4; round++) {
      await runCode(server, 'bash', 'true');
      statuses.add((await server.health()).status);
    }
    expect([...statuses]).toEqual(['ok']);
    await expectServes(server);
  });
});

// In a shared cell it is the other way round: shared.test.ts says what is promised there.
describeEach(FRESH_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way, languages: ['bash', 'python'] });
  });
  afterAll(() => stopClean(server));

  test('[CX-12] no two runs share a cell, also when they overlap', async () => {
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => runCode(server, 'bash', 'echo $$ $HOSTNAME')),
    );
    expect(new Set(replies.map((reply) => reply.container_id)).size).toBe(8);
    expect(new Set(replies.map((reply) => reply.file_path)).size).toBe(8);
  });

  test.each(['python', 'bash'])(
    '[CX-12] what a run leaves behind is not seen by the next: %s',
    async (language) => {
      const places = '/tmp/left /dev/shm/left /tmp/.hidden/left';
      const leave = `mkdir -p /tmp/.hidden; for place in ${places}; do echo x >$place; done; ls -A /tmp | wc -l`;
      const look = 'ls -A /tmp /dev/shm/';
      const inLanguage = (command: string): string =>
        language === 'bash'
          ? command
          : `import subprocess\nsubprocess.run(['bash', '-c', ${JSON.stringify(command)}])`;
      const first = await runCode(server, language, inLanguage(leave));
      expect(first.stdout.trim()).toBe('3');
      // As many as could come from the same pool, so that a cell used again would be met.
      for (let round = 0; round < 3; round++) {
        const reply = await runCode(server, language, inLanguage(look));
        const own = reply.file_path.slice('/tmp/'.length);
        expect(reply.stdout.trim().split('\n').toSorted()).toEqual(
          ['', '/dev/shm/:', '/tmp:', own, ...(way.ownShm ? [] : [own])].toSorted(),
        );
      }
    },
  );

  test('[CX-12] a module planted beside one program is not imported by the next', async () => {
    await runCode(server, 'python', "open('/tmp/json.py', 'w').write('print(\"planted\")')\nimport json");
    expect(await runCode(server, 'python', 'import json\nprint(json.dumps(1))')).toMatchObject({
      stdout: '1\n',
    });
  });
});
