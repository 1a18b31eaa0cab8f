import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { engineApi, requireImages, whyNoEngine } from '../support/docker-engine.ts';
import { countMarked, expectServes, makeMarker, waitUntilGone } from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { testThatNeeds } from '../support/needs.ts';
import { DOCKER_FRESH, DOCKER_SHARED, type Way } from '../support/served-by.ts';
import { TestServer } from '../support/server.ts';

const test = testThatNeeds(whyNoEngine());
const LESS = [
  '--set',
  'languages={"ruby": false, "javascript": false, "typescript": false}',
  '--set',
  'pool.size=1',
];
const startServer = (way: Way): Promise<TestServer> => TestServer.start({ way, args: LESS });

interface Thing {
  readonly name: string;
  readonly state: string;
  readonly pid: number | undefined;
}

interface Labelled {
  readonly Labels: Record<string, string> | null;
}

/** Every container, volume and network that the engine has, with the process that made it if it was one of ours. */
async function listThings(): Promise<Thing[]> {
  const api = engineApi();
  const containers = await api.call<(Labelled & { Names: string[]; State: string })[]>(
    'GET',
    '/containers/json?all=1',
  );
  const { Volumes } = await api.call<{ Volumes: (Labelled & { Name: string })[] | null }>('GET', '/volumes');
  const networks = await api.call<(Labelled & { Name: string })[]>('GET', '/networks');
  return [
    ...containers.map(({ Names, State, Labels }) => toThing(`container ${Names.join()}`, State, Labels)),
    ...(Volumes ?? []).map(({ Name, Labels }) => toThing(`volume ${Name}`, '', Labels)),
    ...networks.map(({ Name, Labels }) => toThing(`network ${Name}`, '', Labels)),
  ];
}

function toThing(name: string, state: string, labels: Labelled['Labels']): Thing {
  const record = labels?.['hotcell.process'];
  const pid = record === undefined ? undefined : (JSON.parse(record) as { pid: number }).pid;
  return { name, state, pid };
}

const namesOf = async (pid: number | undefined): Promise<string[]> =>
  (await listThings()).filter((thing) => thing.pid === pid).map(({ name }) => name);

const suffix = randomBytes(4).toString('hex');

/** What belongs to others and must be there before and after; one of it looks a little like ours. */
const namesOfOthers = async (): Promise<string[]> =>
  (await namesOf(undefined)).filter((name) => name.includes(suffix)).toSorted();

let others: string[] = [];
beforeAll(async () => {
  if (whyNoEngine() !== undefined) return;
  await requireImages();
  const api = engineApi();
  for (const [name, Labels] of [
    [`stranger-${suffix}`, {}],
    [`code-runner-python-${suffix}`, { 'hotcell.owner': 'somebody' }],
  ] as const) {
    const body = { Image: 'hotcell-shell:latest', Cmd: ['sleep', '1000'], Labels };
    await api.call('POST', `/containers/create?name=${name}`, body);
    await api.call('POST', '/volumes/create', { Name: name, Labels });
  }
  others = await namesOfOthers();
  expect(others).toHaveLength(4);
});
afterAll(async () => {
  if (whyNoEngine() !== undefined) return;
  for (const name of [`stranger-${suffix}`, `code-runner-python-${suffix}`]) {
    await engineApi().call('DELETE', `/containers/${name}?force=1`);
    await engineApi().call('DELETE', `/volumes/${name}`);
  }
});

/** The next server starts, serves, and leaves nothing of the dead one; everybody else's things are as they were. */
async function expectNextStartClears(way: Way, dead: number): Promise<void> {
  await using next = await startServer(way);
  // What was asked for before the kill may have come after the first look.
  await waitFor('nothing of the dead one is left', async () => (await namesOf(dead)).length === 0);
  await expectServes(next);
  expect(await namesOfOthers()).toEqual(others);
  expect(await next.stop()).toBe(0);
  expect(await namesOf(next.process.pid)).toEqual([]);
}

test.each([DOCKER_FRESH, DOCKER_SHARED])(
  '[SC-02] $name: kill -9 while cells are being created',
  async (way) => {
    const starting = startServer(way).catch((error: unknown) => error);
    let victim: number | undefined;
    await waitFor('a container is made', async () => {
      victim = (await listThings()).find(
        ({ name, pid, state }) => pid !== undefined && state === 'created' && name.includes('code-runner'),
      )?.pid;
      return victim !== undefined;
    });
    if (victim === undefined) throw new Error('unreachable');
    process.kill(victim, 'SIGKILL');
    expect(await starting).toBeInstanceOf(Error);
    await expectNextStartClears(way, victim);
  },
);

test.each([DOCKER_FRESH, DOCKER_SHARED])(
  '[SC-02, CX-16] $name: kill -9 while programs run: they end by themselves, and the next start clears the rest',
  async (way) => {
    const server = await startServer(way);
    const marker = makeMarker();
    const lost = server.execute('bash', { code: `sleep ${marker}` }).catch((error: unknown) => error);
    await waitFor('the program runs', () => countMarked(marker) > 0);
    await server.stop('SIGKILL');
    expect(await lost).toBeInstanceOf(Error);
    // Without any help: the container's input has ended.
    await waitUntilGone(marker);
    await expectNextStartClears(way, server.process.pid ?? 0);
    await server[Symbol.asyncDispose]();
  },
);

test.each([0, 20, 60, 150])(
  '[SC-02] kill -9 while cells are being removed, %i ms into the stop',
  async (ms) => {
    const server = await startServer(DOCKER_FRESH);
    await Promise.all([1, 2, 3].map(() => server.execute('bash', { code: 'echo 1' })));
    server.process.kill('SIGTERM');
    await sleep(ms);
    await server.stop('SIGKILL');
    await expectNextStartClears(DOCKER_FRESH, server.process.pid ?? 0);
    await server[Symbol.asyncDispose]();
  },
);

test('[SC-02] a living server on the same engine is not touched by the start or the stop of another', async () => {
  await using first = await startServer(DOCKER_SHARED);
  const before = (await namesOf(first.process.pid)).toSorted();
  expect(before.length).toBeGreaterThan(2);
  {
    await using second = await startServer(DOCKER_SHARED);
    await expectServes(second);
    expect(await second.stop()).toBe(0);
    expect(await namesOf(second.process.pid)).toEqual([]);
  }
  expect((await namesOf(first.process.pid)).toSorted()).toEqual(before);
  await expectServes(first);
});
