import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { engineApi } from '../support/docker-engine.ts';
import { engineThingsOf, processesIn } from '../support/footprint.ts';
import { waitFor } from '../support/leftovers.ts';
import { call, run } from '../support/mcp-client.ts';
import {
  CONTAINER,
  DOCKER,
  McpPlace,
  McpServer,
  PRELOAD,
  describeModes,
  isAlive,
  mcpCommand,
  type McpMode,
} from '../support/mcp-server.ts';

let count = 0;
/** The number of seconds of a `sleep`, by which it can be found among all processes. */
const newMarker = (): string => `6${process.pid}${++count}`;

/** Runs until it is killed, with a program beside it: in Python, since Bun may not start any in preload mode. */
const staying = (marker: string): Record<string, unknown> => ({
  code: `import subprocess\nprint("begun", flush=True)\nsubprocess.run(["sleep", "${marker}"], check=True)`,
  language: 'python',
  timeout_ms: 600_000,
  wait_ms: 600_000,
});
const HELLO = { code: 'console.log("works")' };

/** Pids of processes that have this in their command line. */
function pidsOf(part: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(part);
      } catch {
        return false;
      }
    })
    .map(Number)
    .filter((pid) => pid !== process.pid);
}

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It went with one before it.
    }
  }
}

/** All of it at once; in the engine every language has a cell of its own, so all of the server's. */
async function killCell(server: McpServer, { driver }: McpMode, cell: string): Promise<void> {
  if (driver === 'docker') {
    const things = await engineThingsOf(server.pid);
    const cells = things.filter(
      ({ kind, labels }) => kind === 'container' && labels['hotcell.kind'] === 'session',
    );
    if (cells.length === 0) throw new Error('there is no container to kill');
    await Promise.all(cells.map(({ id }) => engineApi().call('POST', `/containers/${id}/kill`)));
    return;
  }
  const pids = processesIn([`/${cell}`]);
  expect(pids).not.toEqual([]);
  kill(pids);
}

/** The runtime that holds the cell, which the server waits for. */
function killRuntime(cell: string): void {
  const pids = pidsOf(cell).filter((pid) => /crun|runc/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')));
  expect(pids).not.toEqual([]);
  kill(pids);
}

describeModes([PRELOAD, CONTAINER, DOCKER], (mode) => {
  test('[SC-02] kill -9 of what runs: the call ends, and the next one works', async () => {
    using place = new McpPlace();
    const server = await McpServer.start(place, { mode });
    const marker = newMarker();
    const running = run(server.client, staying(marker));
    await waitFor('it runs', () => isAlive(marker));
    place.note();
    kill(pidsOf(marker));
    const { reply } = await running;
    expect(reply.success).toBe(false);
    expect((await run(server.client, HELLO)).reply).toMatchObject({ status: 'ok', stdout: 'works\n' });
    const { pid } = server;
    await server[Symbol.asyncDispose]();
    await place.untilNothingIsLeft([pid], mode);
  });

  test('[MC-09, SC-02] a client that is killed: the server ends, and everything with it', async () => {
    using place = new McpPlace();
    const marker = newMarker();
    const { command, args, env } = mcpCommand(place, { mode });
    // A client that does nothing but ask; when it dies, the pipe to the server is shut.
    const asks = [
      {
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/call', params: { name: 'run_code', arguments: staying(marker) } },
    ].map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }));
    const script = `const child = require('node:child_process').spawn(process.argv[1], process.argv.slice(2), { stdio: ['pipe', 'ignore', 'ignore'] });
child.stdin.write(process.env.ASKED); console.log(child.pid);`;
    const client = spawn(process.execPath, ['-e', script, command, ...args], {
      env: { ...env, ASKED: `${asks.join('\n')}\n` },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [first] = (await once(client.stdout, 'data')) as [Buffer];
    const pid = Number(first.toString());
    await waitFor('it runs', () => isAlive(marker));
    place.note();
    client.kill('SIGKILL');
    await waitFor('nothing of the code runs', () => !isAlive(marker));
    await place.untilNothingIsLeft([pid], mode);
    expect(pidsOf(place.stateDirectory)).toEqual([]);
  });

  test('[MC-09, SC-02] kill -9 of the server while code runs: after the next start nothing is left', async () => {
    using place = new McpPlace();
    const marker = newMarker();
    const server = await McpServer.start(place, { mode });
    const asked = run(server.client, staying(marker)).catch((error: unknown) => error);
    await waitFor('it runs', () => isAlive(marker));
    place.note();
    const { pid } = server;
    kill([pid]);
    expect(await asked).toBeInstanceOf(Error);
    await startsAgain(place, mode, [pid]);
    expect(isAlive(marker)).toBe(false);
  });

  test('[MC-09, SC-02] kill -9 of the server at any moment: the next one works, and leaves nothing', async () => {
    using place = new McpPlace();
    const pids: number[] = [];
    const markers: string[] = [];
    for (let round = 0; round < 4; round++) {
      const server = await McpServer.start(place, { mode });
      const marker = newMarker();
      markers.push(marker);
      pids.push(server.pid);
      const asked = run(server.client, staying(marker)).catch((error: unknown) => error);
      // Whatever it does by then: it reads the code, makes a cell, starts the program, clears away.
      await sleep(Math.random() * 1500);
      place.note();
      kill([server.pid]);
      expect(await asked).toBeInstanceOf(Error);
    }
    await startsAgain(place, mode, pids);
    expect(markers.filter(isAlive)).toEqual([]);
  });
});

/** A server after those that were killed: it works, and when it has ended nothing is left of anybody. */
async function startsAgain(place: McpPlace, mode: McpMode, killed: readonly number[]): Promise<void> {
  const next = await McpServer.start(place, { mode });
  const { pid } = next;
  expect((await run(next.client, HELLO)).reply).toMatchObject({ status: 'ok', stdout: 'works\n' });
  place.note();
  await next[Symbol.asyncDispose]();
  await place.untilNothingIsLeft([...killed, pid], mode);
}

describe('cells', () => {
  describeModes([CONTAINER, DOCKER], (mode) => {
    test('[MC-08, SC-02] kill -9 of the cell between runs and during one: the next call has another one', async () => {
      using place = new McpPlace();
      const server = await McpServer.start(place, { mode });
      const { pid } = server;
      const first = (await run(server.client, HELLO)).reply;
      await killCell(server, mode, first.cell ?? '');
      const second = (await run(server.client, HELLO)).reply;
      expect(second).toMatchObject({ status: 'ok', stdout: 'works\n', session_id: first.session_id });
      expect(second.cell).not.toBe(first.cell);

      const marker = newMarker();
      const running = run(server.client, staying(marker));
      await waitFor('it runs', () => isAlive(marker));
      await killCell(server, mode, second.cell ?? '');
      const { reply, failed } = await running;
      expect([failed, reply.success]).toEqual([true, false]);
      await waitFor('nothing of it runs', () => !isAlive(marker));
      expect((await run(server.client, HELLO)).reply).toMatchObject({ status: 'ok', stdout: 'works\n' });
      expect((await call(server.client, 'list_files')).failed).toBe(false);
      place.note();
      await server[Symbol.asyncDispose]();
      await place.untilNothingIsLeft([pid], mode);
    });
  });

  describeModes([CONTAINER], (mode) => {
    test('[MC-08, SC-02] kill -9 of the runtime between runs and during one: whatever goes on can be ended', async () => {
      using place = new McpPlace();
      const server = await McpServer.start(place, { mode });
      const { pid } = server;
      const { cell = '' } = (await run(server.client, HELLO)).reply;
      killRuntime(cell);
      expect((await run(server.client, HELLO)).reply).toMatchObject({ status: 'ok', stdout: 'works\n' });

      const { structured } = await call(server.client, 'create_session');
      const session_id = structured['session_id'];
      const other = (await run(server.client, { ...HELLO, session_id })).reply;
      const marker = newMarker();
      const begun = (await run(server.client, { ...staying(marker), session_id, wait_ms: 0 })).reply;
      await waitFor('it runs', () => isAlive(marker));
      killRuntime(other.cell ?? '');
      const ended = await call(server.client, 'cancel_run', { run_id: begun.run_id, session_id });
      expect(ended.structured['phase']).toBe('ended');
      await waitFor('nothing of it runs', () => !isAlive(marker));
      expect((await run(server.client, { ...HELLO, session_id })).reply).toMatchObject({ stdout: 'works\n' });
      place.note();
      await server[Symbol.asyncDispose]();
      await place.untilNothingIsLeft([pid], mode);
    });
  });
});
