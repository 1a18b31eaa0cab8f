import { randomUUID } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import {
  cellProcesses,
  countMarked,
  describeTraces,
  expectServes,
  instancesOf,
  makeMarker,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { TestServer, makeStateDirectory } from '../support/server.ts';

/** Nothing is booted in the background, so that a failing start is not also a stop amid boots. */
const ONE_CELL = ['--set', 'pool.size=1'];

interface CellConfig {
  readonly hostname: string;
  readonly annotations: Record<string, string>;
}

function readCellConfigs(server: TestServer): { instance: string; config: CellConfig }[] {
  return instancesOf(server.stateDirectory).flatMap((instance) => {
    const cells = join(server.stateDirectory, instance, 'cells');
    return readdirSync(cells).map((id) => ({
      instance,
      config: JSON.parse(readFileSync(join(cells, id, 'config.json'), 'utf8')) as CellConfig,
    }));
  });
}

describe('start', () => {
  test('[CX-11, CX-13] every language has a cell, by its name and owner, when the server says it is ready', async () => {
    const server = await startServer();
    const configs = readCellConfigs(server);
    const health = await server.health();
    const names = configs.map(({ config }) => config.hostname);
    expect(health.status).toBe('ok');
    for (const language of Object.keys(health.containers)) {
      expect(
        names.filter((name) => new RegExp(`^code-runner-${language}-[0-9a-f]{4}$`).test(name)).length,
      ).toBeGreaterThan(0);
    }
    for (const { instance, config } of configs) {
      expect(config.annotations).toMatchObject({
        'hotcell.owner': instance,
        'hotcell.name': config.hostname,
        'hotcell.kind': 'run',
      });
    }
    expect(cellProcesses(instancesOf(server.stateDirectory)).length).toBeGreaterThanOrEqual(
      Object.keys(health.containers).length,
    );
    await stopClean(server);
  });

  test('[CX-11] a root without interpreters stops the start and says what to do', async () => {
    const rootfs = mkdtempSync(join(tmpdir(), 'hotcell-rootfs-'));
    mkdirSync(join(rootfs, 'usr'));
    const stateDirectory = makeStateDirectory();
    await expect(startServer({ env: { HOTCELL_ROOTFS: rootfs }, stateDirectory })).rejects.toThrow(
      /ended with [1-9]\d*:[^]*no cell could be started[^]*→/,
    );
    expect(describeTraces(stateDirectory, [])).toEqual([]);
    for (const folder of [rootfs, stateDirectory]) rmSync(folder, { recursive: true });
  });

  test.each([
    [
      'a root that is not there',
      { env: { HOTCELL_ROOTFS: '/no/such/folder' } },
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
  ])('[CX-11] %s stops the start and says what to do', async (_what, options, message) => {
    const stateDirectory = makeStateDirectory();
    await expect(startServer({ ...options, stateDirectory })).rejects.toThrow(message);
    expect(describeTraces(stateDirectory, [])).toEqual([]);
    rmSync(stateDirectory, { recursive: true });
  });

  test('[CX-11, CX-18] a port that is taken is told, and the cells made meanwhile are gone', async () => {
    const server = await startServer();
    await settle(server);
    const stateDirectory = makeStateDirectory();
    const { port } = new URL(server.url);
    // The last one wins: the first --port is the test server's own.
    await expect(startServer({ args: ['--port', port, ...ONE_CELL], stateDirectory })).rejects.toThrow(
      new RegExp(`ended with [1-9]\\d*:[^]*cannot listen on 127.0.0.1:${port}[^]*→ .*--port`),
    );
    expect(describeTraces(stateDirectory, [])).toEqual([]);
    rmSync(stateDirectory, { recursive: true });
    await expectServes(server);
    await stopClean(server);
  });
});

describe('stop', () => {
  test.each(['SIGTERM', 'SIGINT'] as const)(
    '[CX-18] %s amid runs: answers, exit 0, nothing left',
    async (signal) => {
      const server = await startServer();
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
      const instances = instancesOf(server.stateDirectory);
      const code = await server.stop(signal);
      for (const end of await ends) {
        const told =
          end.status === 'fulfilled' ? [end.value.status, end.value.body.code] : [503, 'SHUTTING_DOWN'];
        expect(told).toEqual([503, 'SHUTTING_DOWN']);
      }
      expect({
        code,
        left: describeTraces(server.stateDirectory, instances),
        marked: countMarked(marker),
      }).toEqual({ code: 0, left: [], marked: 0 });
      rmSync(server.stateDirectory, { recursive: true });
    },
  );

  test('[CX-18] clients that keep their connections do not hold the stop', async () => {
    const server = await startServer();
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
    rmSync(server.stateDirectory, { recursive: true, force: true });
    expect(end).toEqual({ code: 0 });
  });

  test('[CX-18] SIGTERM amid boots: exit 0, nothing left', async () => {
    const ends: unknown[] = [];
    for (let round = 0; round < 5; round++) {
      const server = await TestServer.start();
      const instances = instancesOf(server.stateDirectory);
      const code = await server.stop();
      ends.push({ code, left: describeTraces(server.stateDirectory, instances) });
      rmSync(server.stateDirectory, { recursive: true, force: true });
    }
    expect(ends).toEqual(ends.map(() => ({ code: 0, left: [] })));
  });
});

describe('log', () => {
  test('[CX-19] one JSON line per run with its timing, and nothing of what was sent', async () => {
    const server = await startServer({ args: ['--log-level', 'debug'] });
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
    await fetch(`${server.url}/health?token=${inQuery}`, { headers: { authorization: `Bearer ${inQuery}` } });
    await runCode(server, 'bash', { code: 'kill -9 $$', env: { LC_ALL: inEnv ?? '' } });
    await settle(server);
    await server.stop();
    const lines = server.output.split('\n').filter((line) => line.startsWith('{'));
    const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const runs = entries.filter((entry) => entry['msg'] === 'run');
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
      expect.arrayContaining(['ready', 'request', 'stopping', 'stopped']),
    );
    for (const secret of [inEnv, inCode, inInput, inArgument, inFile, inQuery])
      expect(server.output).not.toContain(secret);
    expect(server.output).not.toContain('secret-');
    rmSync(server.stateDirectory, { recursive: true });
  });
});
