import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { howOften } from '../support/endurance.ts';
import { waitFor } from '../support/leftovers.ts';
import {
  describeTraces,
  expectServes,
  instancesOf,
  makeMarker,
  startServer,
} from '../support/live-server.ts';
import { descendantsOf, listAll, signalAll, type SeenProcess } from '../support/processes.ts';
import { OCI_FRESH, describeEach } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';
import { countMarked } from '../support/session-work.ts';

const LANGUAGES = ['bash', 'python'];
const nested = (args: readonly string[] = []) => ['--set', 'pool.nested=true', ...args];

/** Who makes the runs of one server, or relays for them, and PID 1 of each run: all that is not a program. */
function helpersOf(server: TestServer): SeenProcess[] {
  const [instance = 'none'] = instancesOf(server.stateDirectory);
  return listAll().filter(
    ({ groups, words }) => groups.includes(instance) && /nest\.pl|forker\.pl|python3 -u/.test(words),
  );
}

describeEach([OCI_FRESH], (way) => {
  test('[CX-02, CX-12] every language answers from a slot, and says so', async () => {
    await using server = await startServer({ way, args: nested() });
    const health = (await (await fetch(`${server.url}/health`)).json()) as Record<string, unknown>;
    expect(health).toMatchObject({ walls: 'nested', walls_problem: null });
    const programs = {
      python: 'print(6 * 7)',
      ruby: 'puts 42',
      javascript: 'console.log(42)',
      typescript: 'console.log(42 as number)',
      bash: 'echo 42',
    };
    const ids = new Set<string>();
    for (const [language, code] of Object.entries(programs))
      for (let n = 0; n < 3; n++) {
        const { body } = await server.execute(language, { code });
        expect(body).toMatchObject({
          stdout: '42\n',
          exit_code: 0,
          receipt: { isolation: { walls: 'nested' } },
        });
        ids.add(body.container_id);
      }
    expect(ids.size).toBe(15);
    await expectServes(server);
  });

  test('[CX-08] 64 at once are all answered, each with its own output', async () => {
    await using server = await startServer({
      way,
      languages: LANGUAGES,
      args: nested(['--set', 'pool.running=64']),
    });
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        server.execute(LANGUAGES[n % 2] ?? '', { code: n % 2 === 0 ? `echo ${n}` : `print(${n})` }),
      ),
    );
    expect(answers.map(({ body }) => body.stdout)).toEqual(answers.map((_, n) => `${n}\n`));
  });

  test('[CX-12, SC-02] a generation that is over takes nobody with it, and leaves nothing', async () => {
    await using server = await startServer({
      way,
      languages: LANGUAGES,
      args: nested(['--set', 'pool.nestRuns=3', '--set', 'pool.nestSlots=2']),
    });
    const cells = new Set<string>();
    for (let n = 0; cells.size < 5; n++) {
      const { body } = await server.execute('bash', { code: `echo ${n}` });
      expect(body.stdout).toBe(`${n}\n`);
      cells.add(body.container_id.split('-')[0] ?? '');
    }
    const [instance = 'none'] = instancesOf(server.stateDirectory);
    await waitFor(
      'old generations are gone',
      () => readdirSync(join(server.stateDirectory, instance, 'cells')).length <= 4,
    );
  });

  test('[CX-08, SC-02] whoever helps is killed at any moment: runs are answered, and nothing is left', async () => {
    await using server = await startServer({ way, languages: LANGUAGES, args: nested() });
    const rounds = howOften(12, 200);
    for (let n = 0; n < rounds; n++) {
      const running = LANGUAGES.map((language) =>
        server.execute(language, {
          code:
            language === 'bash' ? 'sleep 0.02; echo done' : 'import time\ntime.sleep(0.02)\nprint("done")',
        }),
      );
      const helpers = helpersOf(server);
      const chosen = helpers[(n * 7) % Math.max(1, helpers.length)];
      if (chosen !== undefined) signalAll([chosen.pid], 'SIGKILL');
      // One that was killed with its helper may be told as what it was: a program that a signal ended.
      const ends = (await Promise.all(running)).map(({ body }) =>
        body.exit_code === 137 ? 'killed' : body.stdout || JSON.stringify(body),
      );
      expect(ends.filter((end) => end !== 'killed' && end !== 'done\n')).toEqual([]);
    }
    await expectServes(server);
    const instances = instancesOf(server.stateDirectory);
    expect(await server.stop()).toBe(0);
    expect(describeTraces(server.stateDirectory, instances)).toEqual([]);
  });

  test('[SC-02] kill -9 of the server ends every run in a slot by itself', async () => {
    await using server = await startServer({ way, languages: LANGUAGES, args: nested() });
    const marker = makeMarker();
    for (const language of LANGUAGES)
      server
        .execute(language, {
          code: language === 'bash' ? `sleep ${marker}` : `import os\nos.system("sleep ${marker}")`,
          timeout_ms: 60_000,
        })
        .catch(() => {});
    await waitFor('both run', () => countMarked(marker) >= 2);
    const before = descendantsOf(server.process.pid ?? 0);
    expect(before.length).toBeGreaterThan(0);
    server.process.kill('SIGKILL');
    await waitFor('they are gone without any server', () => countMarked(marker) === 0);
  });
});
