import { afterAll, beforeAll, expect, test } from 'vitest';
import { cellsOf, footprintOf, processesIn } from '../support/footprint.ts';
import { expectServes, readMetrics, runCode, startServer, stopClean } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { USUAL_WAYS, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

describeEach(USUAL_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({
      way,
      languages: ['bash', 'python', 'ruby'],
      args: ['--set', 'pool.idleMs=1500ms', '--set', 'pool.idleCheckMs=100ms'],
    });
  });
  // Everything rests when nobody has asked for a while, so a pool of no cells is what to wait for.
  afterAll(() => stopClean(server, 0));

  const isStopped = async (): Promise<boolean> =>
    Object.values((await server.health()).containers).every((state) => state === 'stopped');

  test('[CX-14, CX-15] idle cells are removed, made again by the next request, and then kept warm', async () => {
    const { cgroups } = await footprintOf(server);
    expect(processesIn(cgroups).length).toBeGreaterThan(0);
    await waitFor('all languages have stopped', isStopped);
    await waitFor('their cells are gone', async () => (await cellsOf(server)).length === 0);
    await waitFor('their processes are gone', () => processesIn(cgroups).length === 0);
    expect((await server.health()).status).toBe('degraded');

    const cold = await runCode(server, 'python', 'print(1)');
    expect(cold).toMatchObject({ stdout: '1\n', receipt: { warm: false } });
    await waitFor('a cell waits again', async () => {
      const ready = await readMetrics(server, 'hotcell_cells_ready');
      return (ready.get('{language="python"}') ?? 0) > 0;
    });
    expect(await runCode(server, 'python', 'print(2)')).toMatchObject({
      stdout: '2\n',
      receipt: { warm: true },
    });
    // Only the language that was asked for is back.
    await waitFor(
      'python is running',
      async () => (await server.health()).containers['python'] === 'running',
    );
    expect((await server.health()).containers['ruby']).toBe('stopped');
    await waitFor('it goes to rest again', isStopped);
    await expectServes(server);
  });

  test('[CX-14] a run under way is not taken for idle', async () => {
    const reply = await runCode(server, 'bash', 'sleep 4; echo done');
    expect(reply).toMatchObject({ stdout: 'done\n', exit_code: 0 });
  });
});
