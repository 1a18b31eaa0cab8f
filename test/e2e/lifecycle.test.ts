import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { cellsOf, describeFootprint, footprintOf, processesIn } from '../support/footprint.ts';
import {
  countMarked,
  expectServes,
  makeMarker,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { USUAL_WAYS, describeEach, describeOnce } from '../support/served-by.ts';
import {
  StartFailure,
  TestServer,
  makeStateDirectory,
  type ServerOptions,
  removeFolders,
} from '../support/server.ts';

/** Nothing is booted in the background, so that a failing start is not also a stop amid boots. */
const ONE_CELL = ['--set', 'pool.size=1'];

/** Starts a server that cannot serve; says why it ended, and what is left of it. */
async function failToStart(options: ServerOptions): Promise<{ message: string; left: string[] }> {
  const stateDirectory = makeStateDirectory();
  const failure: unknown = await startServer({ ...options, stateDirectory }).catch((error: unknown) => error);
  if (!(failure instanceof StartFailure)) throw new Error('it started', { cause: failure });
  const driver = options.way?.driver ?? 'oci';
  const known = { instances: [], cgroups: [] };
  const left = await describeFootprint({ stateDirectory, driver, pid: failure.pid, ...known });
  removeFolders(stateDirectory);
  return { message: failure.message, left };
}

describeEach(USUAL_WAYS, (way) => {
  describe('start', () => {
    test('[CX-11, CX-13] every language has a cell, by its name and owner, when the server says it is ready', async () => {
      const server = await startServer({ way });
      const cells = await cellsOf(server);
      const health = await server.health();
      expect(health.status).toBe('ok');
      for (const language of Object.keys(health.containers)) {
        const pattern = new RegExp(`^code-runner-${language}-[0-9a-f]{4}$`);
        expect(cells.filter(({ name }) => pattern.test(name)).length).toBeGreaterThan(0);
      }
      const { cgroups } = await footprintOf(server);
      expect(processesIn(cgroups).length).toBeGreaterThanOrEqual(Object.keys(health.containers).length);
      await settle(server);
      const settled = await cellsOf(server);
      expect(new Set(settled.map(({ owner }) => owner)).size).toBe(1);
      for (const { name, owner, labels } of settled) {
        expect(owner).toMatch(/^[0-9a-f]{12}$/);
        expect(labels).toMatchObject({ 'hotcell.owner': owner, 'hotcell.name': name, 'hotcell.kind': 'run' });
      }
      await stopClean(server);
    });

    test('[CX-11, CX-18] a port that is taken is told, and the cells made meanwhile are gone', async () => {
      const server = await startServer({ way });
      await settle(server);
      const { port } = new URL(server.url);
      // The last one wins: the first --port is the test server's own.
      const { message, left } = await failToStart({ way, args: ['--port', port, ...ONE_CELL] });
      expect(message).toMatch(
        new RegExp(`ended with [1-9]\\d*:[^]*cannot listen on 127.0.0.1:${port}[^]*→ .*--port`),
      );
      expect(left).toEqual([]);
      await expectServes(server);
      await stopClean(server);
    });
  });

  describe('stop', () => {
    test.each(['SIGTERM', 'SIGINT'] as const)(
      '[CX-18] %s amid runs: answers, exit 0, nothing left',
      async (signal) => {
        const server = await startServer({ way, languages: ['bash'] });
        await settle(server);
        const marker = makeMarker();
        const running = Array.from({ length: 2 }, () =>
          server.execute(
            'bash',
            { code: `setsid sleep ${marker} & sleep ${marker}`, timeout_ms: 60_000 },
            { connection: 'close' },
          ),
        );
        const ends = Promise.allSettled(running);
        await waitFor('both run', () => countMarked(marker) >= 4);
        const footprint = await footprintOf(server);
        const code = await server.stop(signal);
        for (const end of await ends) {
          const told =
            end.status === 'fulfilled' ? [end.value.status, end.value.body.code] : [503, 'SHUTTING_DOWN'];
          expect(told).toEqual([503, 'SHUTTING_DOWN']);
        }
        expect({
          code,
          left: await describeFootprint(footprint),
          marked: countMarked(marker),
        }).toEqual({ code: 0, left: [], marked: 0 });
        removeFolders(server.stateDirectory);
      },
    );

    test('[CX-18] clients that keep their connections do not hold the stop', async () => {
      const server = await startServer({ way, languages: ['bash'] });
      await settle(server);
      const marker = makeMarker();
      const running = server.execute('bash', { code: `sleep ${marker}`, timeout_ms: 60_000 });
      await waitFor('it runs', () => countMarked(marker) > 0);
      const stopped = server.stop().then((code) => ({ code }));
      await running;
      // The answer is out, so nothing is left to wait for; generous for a machine under load.
      const end = await Promise.race([stopped, sleep(15_000, 'held')]);
      server.process.kill('SIGKILL');
      await stopped;
      removeFolders(server.stateDirectory);
      expect(end).toEqual({ code: 0 });
    });

    test('[CX-18] SIGTERM amid boots: exit 0, nothing left', async () => {
      const ends: unknown[] = [];
      for (let round = 0; round < (way.slowBoot ? 2 : 3); round++) {
        const server = await TestServer.start({ way });
        const footprint = await footprintOf(server);
        const code = await server.stop();
        ends.push({ code, left: await describeFootprint(footprint) });
        removeFolders(server.stateDirectory);
      }
      expect(ends).toEqual(ends.map(() => ({ code: 0, left: [] })));
    });
  });

  describe('log', () => {
    test('[CX-19] one JSON line per run with its timing, and nothing of what was sent', async () => {
      const server = await startServer({
        way,
        languages: ['bash', 'python'],
        args: ['--log-level', 'debug'],
      });
      const [inEnv, inCode, inInput, inArgument, inFile, inQuery] = Array.from(
        { length: 6 },
        () => `secret-${randomUUID()}`,
      );
      const reply = await runCode(server, 'python', {
        code: `import os, sys\nassert '${inCode}'\nprint(os.environ['TOKEN'], sys.stdin.read())\nraise ValueError(os.environ['TOKEN'])`,
        env: { TOKEN: inEnv },
        stdin: inInput,
        args: [inArgument],
        files: [{ path: 'x', content: inFile }],
      });
      expect(reply.stdout).toContain(inEnv);
      await server.execute('python', { code: '', env: { TOKEN: inEnv }, nonsense: inCode });
      await server.execute('python', `{"code": "${inCode}`);
      await fetch(`${server.url}/health?token=${inQuery}`, {
        headers: { authorization: `Bearer ${inQuery}` },
      });
      await runCode(server, 'bash', { code: 'kill -9 $$', env: { LC_ALL: inEnv ?? '' } });
      await settle(server);
      await server.stop();
      const lines = server.output.split('\n').filter((line) => line.startsWith('{'));
      const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      const runs = entries.filter((entry) => entry['msg'] === 'run ended');
      expect(runs).toHaveLength(2);
      expect(runs[0]).toMatchObject({
        level: 30,
        language: 'python',
        cell: reply.container_id,
        exitCode: 1,
        wallTimeMs: expect.any(Number),
        time: expect.stringMatching(/^\d{4}-/),
      });
      expect(entries.map((entry) => entry['msg'])).toEqual(
        expect.arrayContaining(['server ready', 'request served', 'server stopping', 'server stopped']),
      );
      for (const secret of [inEnv, inCode, inInput, inArgument, inFile, inQuery])
        expect(server.output).not.toContain(secret);
      expect(server.output).not.toContain('secret-');
      removeFolders(server.stateDirectory);
    });
  });
});

describeOnce('a start that cannot serve', () => {
  test('[CX-11] a root without interpreters stops the start and says what to do', async () => {
    const rootfs = mkdtempSync(join(tmpdir(), 'hotcell-rootfs-'));
    mkdirSync(join(rootfs, 'usr'));
    // By its name: with auto another driver would be tried.
    const { message, left } = await failToStart({
      args: ['--driver', 'oci'],
      env: { HOTCELL_ROOTFS: rootfs },
    });
    expect(message).toMatch(/ended with [1-9]\d*:[^]*no cell could be started[^]*→/);
    expect(left).toEqual([]);
    rmSync(rootfs, { recursive: true });
  });

  test.each([
    [
      'a root that is not there',
      { args: ['--driver', 'oci'], env: { HOTCELL_ROOTFS: '/no/such/folder' } },
      /ended with [1-9]\d*:[^]*does not exist[^]*→ .*rootfs/,
    ],
    ['an unknown runtime', { args: ['--runtime', 'no-such-runtime'] }, /ended with 78:[^]*runtime[^]*→/],
    [
      'an address of another machine',
      { args: ['--host', '192.0.2.1', ...ONE_CELL], env: { HOTCELL_API_KEY: 'long-enough' } },
      /ended with [1-9]\d*:[^]*cannot listen[^]*→/,
    ],
    [
      'everybody’s address without a key',
      { args: ['--host', '0.0.0.0'] },
      /ended with 78:[^]*no key[^]*→ .*HOTCELL_API_KEY/,
    ],
  ])('[CX-11] %s stops the start and says what to do', async (_what, options, words) => {
    const { message, left } = await failToStart(options);
    expect(message).toMatch(words);
    expect(left).toEqual([]);
  });
});

// The door is the same for all drivers.
describeOnce('a stop', () => {
  test('[CX-18] connections on which nothing or half a request has come do not hold the stop', async () => {
    const server = await startServer({ args: ONE_CELL });
    const { hostname, port } = new URL(server.url);
    const head = 'POST /execute/bash HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';
    const sockets = ['', head, `${head}content-length: 100\r\n\r\n{"code": "`].map((words) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.write(words);
      return socket;
    });
    // An answer later on the same machine: by then the server has what was written before.
    await expectServes(server);
    const stopped = server.stop().then((code) => ({ code }));
    const end = await Promise.race([stopped, sleep(15_000, 'held')]);
    for (const socket of sockets) socket.destroy();
    await stopped;
    removeFolders(server.stateDirectory);
    expect(end).toEqual({ code: 0 });
  });
});
