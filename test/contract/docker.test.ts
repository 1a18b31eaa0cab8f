import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Driver } from '../../src/core/driver.ts';
import { DOCKER as DOCKER_KIND } from '../../src/drivers/docker/kind.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { ownerRecord } from '../../src/drivers/process/owner.ts';
import { DockerDriver } from '../../src/drivers/docker/driver.ts';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { BASE_IMAGE, ensureBaseImage } from '../support/base-image.ts';
import { howOften } from '../support/endurance.ts';
import { engineApi, whyNoEngine } from '../support/docker-engine.ts';
import type { EngineApi } from '../support/engine-api.ts';
import { testThatNeeds } from '../support/needs.ts';
import { startPodman, whyNoPodman } from '../support/podman.ts';
import { driverContract } from './driver-contract.ts';
import { DOCKER_EXEMPTIONS } from './exemptions.ts';
import { checkNoWorkerLog, checkWorkerLog } from './worker-log.ts';

/** With the one image that has everything, whatever the spec says. Made with its first use: the engine starts later. */
function makeDriver(engine: () => EngineApi, runtime: string): Driver {
  let made: DockerDriver | undefined;
  const driver = (): DockerDriver =>
    (made ??= new DockerDriver({
      endpoint: findEndpoint({ host: `unix://${engine().socket}` }),
      runtime,
      stateDirectory: join(folder, 'state'),
      guest: fileURLToPath(new URL('../../guest', import.meta.url)),
      recipes: fileURLToPath(new URL('../../images', import.meta.url)),
      languages: {},
      weaker: [],
      log: SILENT_LOG,
      onProgress: () => {},
    }));
  return {
    name: 'docker',
    traits: DOCKER_KIND.traits,
    probe: () => driver().probe(),
    create: (spec) => driver().create({ ...spec, image: { name: BASE_IMAGE, recipe: undefined } }),
    lasting: {
      adopt: (record, spec) => driver().lasting.adopt(record, spec),
      list: () => driver().lasting.list(),
      reclaim: (store, keep) => driver().lasting.reclaim(store, keep),
    },
    list: () => driver().list(),
    imageName: (image) => driver().imageName(image),
    problem: () => driver().problem(),
    orphans: () => driver().orphans(),
    reclaim: () => driver().reclaim(),
    close: () => driver().close(),
  };
}

const stack = new AsyncDisposableStack();
const folder = mkdtempSync(join(tmpdir(), 'hotcell-contract-'));
stack.defer(() => rmSync(folder, { recursive: true }));
const podmanMissing = whyNoEngine() ?? whyNoPodman();
let podman: EngineApi;
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];
const ownersOfDevices = (): number[] => DEVICES.map((device) => statSync(device).uid);
const ownersBefore = ownersOfDevices();

beforeAll(async () => {
  if (whyNoEngine() !== undefined) return;
  await ensureBaseImage(engineApi().socket);
  if (podmanMissing !== undefined) return;
  podman = await startPodman(stack);
});
afterAll(() => stack.disposeAsync());

async function whyNoRuntime(name: string): Promise<string | undefined> {
  if (whyNoEngine() !== undefined) return whyNoEngine();
  const { Runtimes } = await engineApi().call<{ Runtimes: Record<string, unknown> }>('GET', '/info');
  return name in Runtimes ? undefined : `the engine knows no runtime ${name}`;
}

const ENGINES = [
  { name: 'docker', runtime: 'runc', missing: whyNoEngine(), exempt: DOCKER_EXEMPTIONS.runc },
  { name: 'docker', runtime: 'runsc', missing: await whyNoRuntime('runsc'), exempt: DOCKER_EXEMPTIONS.runsc },
  { name: 'podman', runtime: 'crun', missing: podmanMissing, exempt: DOCKER_EXEMPTIONS.podman },
  // The other runtime of the same engine: with ENDURANCE only.
  ...(howOften(0, 1) === 0
    ? []
    : [
        {
          name: 'podman',
          runtime: 'runc',
          missing: podmanMissing,
          exempt: DOCKER_EXEMPTIONS.podman,
        } as const,
      ]),
] as const;

const engineOf = (name: string) => (name === 'docker' ? engineApi : () => podman);

for (const { name, runtime, missing, exempt } of ENGINES) {
  driverContract({
    title: `[CX-09, SC-03] ${name} on ${runtime}`,
    test: testThatNeeds(missing),
    exempt,
    makeDriver: () => makeDriver(engineOf(name), runtime),
  });

  testThatNeeds(missing)(`[FL-13] the log of a worker, ${name} on ${runtime}`, async () => {
    const driver = makeDriver(engineOf(name), runtime);
    const check = runtime === 'runsc' ? checkNoWorkerLog : checkWorkerLog;
    try {
      await check(driver, engineOf(name)());
    } finally {
      await driver.close();
    }
  });
}

testThatNeeds(whyNoEngine())('[SC-02] nothing of any cell is left in the engine', async () => {
  interface Labelled {
    readonly Labels: Readonly<Record<string, string>> | null;
  }
  const filters = encodeURIComponent(JSON.stringify({ label: ['hotcell.owner'] }));
  const own = await ownerRecord();
  // Other files of tests use the engine at the same time.
  const isOurs = ({ Labels }: Labelled): boolean => Labels?.['hotcell.process'] === own;
  for (const engine of podmanMissing === undefined ? [engineApi(), podman] : [engineApi()]) {
    const containers = await engine.call<Labelled[]>('GET', `/containers/json?all=1&filters=${filters}`);
    const { Volumes } = await engine.call<{ Volumes: Labelled[] | null }>(
      'GET',
      `/volumes?filters=${filters}`,
    );
    expect([...containers, ...(Volumes ?? [])].filter(isOurs)).toEqual([]);
  }
});

// Runtimes give the streams of a container to its user; one that got the host's /dev/null would give that away.
testThatNeeds(whyNoEngine())('[SC-03] the devices of the host belong to whom they belonged', () => {
  expect(ownersOfDevices()).toEqual(ownersBefore);
});
