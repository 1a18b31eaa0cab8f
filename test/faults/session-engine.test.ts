import { afterAll, beforeAll, expect } from 'vitest';
import { whyNoEngine } from '../support/docker-engine.ts';
import { FaultyEngine } from '../support/faulty-engine.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { TestServer } from '../support/server.ts';
import { SessionDoor } from '../support/session-door.ts';

const test = testThatNeeds(whyNoEngine());
const RECOVERS_MS = 90_000;

const stack = new AsyncDisposableStack();
let engine: FaultyEngine;
let server: TestServer;
let door: SessionDoor;
beforeAll(async () => {
  if (whyNoEngine() !== undefined) return;
  engine = await FaultyEngine.start(stack);
  server = await TestServer.start({
    args: ['--driver', 'docker', '--set', `docker.host=${engine.host}`, '--set', 'pool.size=0'],
  });
  stack.use(server);
  door = new SessionDoor(() => server.url);
});
afterAll(() => stack.disposeAsync());

async function waitForProblem(isThere: boolean): Promise<void> {
  const words = isThere ? 'the engine is known to be away' : 'the engine is back';
  const check = async (): Promise<boolean> => ((await server.health()).problem !== null) === isThere;
  await waitFor(words, check, RECOVERS_MS);
}

/** Writes a numbered line, one after the other, until somebody makes the file `stop`. */
const COUNT = 'n=0; until [ -e stop ]; do n=$((n + 1)); echo "line $n"; sleep 0.01; done; echo "$n lines"';

test('[RS-22, SC-02] an engine that hangs: the session says so, waits, and goes on with every byte', async () => {
  await using session = await door.create();
  await session.print('mkdir sub && cd sub');
  const counting = await session.begin(`cd /workspace/${session.made.project_id} && ${COUNT}`);
  await waitFor('it counts', async () => (await session.output(counting)).includes('line 5\n'));
  engine.hang();
  await waitForProblem(true);
  const refused = await session.exec('true');
  expect(refused).toMatchObject({ ok: false, exit_code: -1, end: { reason: 'start_failed' } });

  engine.goOn();
  await waitForProblem(false);
  const answers = async (): Promise<boolean> => (await session.exec('true')).ok;
  await waitFor('the session answers', answers, RECOVERS_MS);
  expect(await session.print('pwd')).toBe(`/workspace/${session.made.project_id}/sub\n`);
  await session.print('touch ../stop');
  expect((await session.result(counting)).end.reason).toBe('exit');
  const lines = (await session.output(counting)).trimEnd().split('\n');
  const count = Number.parseInt(lines.pop() ?? '', 10);
  expect(lines).toEqual(Array.from({ length: count }, (_, index) => `line ${index + 1}`));
});

test('[RS-22, SC-02] an engine that takes its containers with it: 410 with the reason, and the files are kept', async () => {
  const session = await door.create({ project_id: 'kept' });
  await session.print('echo work > file');
  const running = await session.begin('sleep 1000');
  await engine.crash();
  await waitForProblem(true);
  await engine.startAgain();
  await waitForProblem(false);
  const isOver = async (): Promise<boolean> => (await session.ask('GET', '')).status === 410;
  await waitFor('the session is over', isOver, RECOVERS_MS);
  const { body } = await session.ask('GET', `/execs/${running}`);
  expect(body).toMatchObject({ code: 'SESSION_ENDED', detail: expect.stringContaining('cell_lost') });

  await using next = await door.create({ project_id: 'kept' });
  expect(await next.print('cat file')).toBe('work\n');
});
