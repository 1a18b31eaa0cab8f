import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SILENT_LOG } from '../../src/core/log.ts';
import { ensureBaseImage } from '../support/base-image.ts';
import { engineApi, whyNoEngine } from '../support/docker-engine.ts';
import type { EngineApi } from '../support/engine-api.ts';
import { findTraces } from '../support/leftovers.ts';
import { testThatNeeds, whyNotOci } from '../support/needs.ts';
import { startPodman, whyNoPodman } from '../support/podman.ts';
import { makeStateDirectory, removeFolders } from '../support/server.ts';
import { LASTING_EXEMPTIONS } from './exemptions.ts';
import { lastingContract, usedStores } from './lasting.ts';

const stack = new AsyncDisposableStack();
const stateDirectory = makeStateDirectory();
stack.defer(() => removeFolders(stateDirectory));
let podman: EngineApi;
const podmanMissing = whyNoEngine() ?? whyNoPodman();

beforeAll(async () => {
  if (whyNoEngine() !== undefined) return;
  await ensureBaseImage(engineApi().socket);
  if (podmanMissing !== undefined) return;
  podman = await startPodman(stack);
});
afterAll(() => stack.disposeAsync());

for (const runtime of ['crun', 'runc', 'runsc'] as const) {
  const options = {
    runtime,
    stateDirectory,
    rootfs: undefined,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    tools: [],
    weaker: [],
    log: SILENT_LOG,
  };
  lastingContract({
    title: `oci on ${runtime}`,
    test: testThatNeeds(await whyNotOci(options)),
    exempt: LASTING_EXEMPTIONS[runtime],
    subject: () => ({ words: { kind: 'oci', runtime, stateDirectory } }),
  });
}

lastingContract({
  title: 'docker on runc',
  test: testThatNeeds(whyNoEngine()),
  exempt: LASTING_EXEMPTIONS.docker,
  subject: () => ({
    words: { kind: 'docker', runtime: 'runc', stateDirectory, socket: engineApi().socket },
  }),
});

lastingContract({
  title: 'podman on crun',
  test: testThatNeeds(podmanMissing),
  exempt: LASTING_EXEMPTIONS.podman,
  subject: () => ({ words: { kind: 'docker', runtime: 'crun', stateDirectory, socket: podman.socket } }),
});

test('[SC-02, RS-12] nothing of any cell that lasted is left on the host', () => {
  expect(findTraces(stateDirectory)).toEqual({ processes: [], cgroups: [], mounts: [], folders: [] });
});

testThatNeeds(whyNoEngine())(
  '[SC-02, RS-12] nothing of any cell that lasted is left in an engine',
  async () => {
    interface Labelled {
      readonly Labels: Record<string, string> | null;
    }
    const isOurs = ({ Labels }: Labelled): boolean => usedStores.has(Labels?.['hotcell.keeper'] ?? '');
    expect(usedStores.size).toBeGreaterThan(10);
    for (const engine of podmanMissing === undefined ? [engineApi(), podman] : [engineApi()]) {
      const containers = await engine.call<Labelled[]>('GET', '/containers/json?all=1');
      const { Volumes } = await engine.call<{ Volumes: Labelled[] | null }>('GET', '/volumes');
      expect([...containers, ...(Volumes ?? [])].filter(isOurs)).toEqual([]);
    }
  },
);
