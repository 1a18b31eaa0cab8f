import { afterEach, describe, expect, test, vi } from 'vitest';
import { PROMISES, unenforced } from '../../core/enforcement.ts';
import { toSeccompProfile } from '../linux/seccomp.ts';
import { findEndpoint } from './endpoint.ts';
import { probeDocker, toEnforcement, type DockerHost } from './probe.ts';
import {
  DOCKER_20,
  PODMAN_4,
  ROOTLESS_DOCKER,
  WINDOWS_CONTAINERS,
  type RecordedEngine,
} from './recorded-engines.double.ts';
import { ScriptedEngine, type EngineScript } from './scripted-engine.double.ts';

const play =
  ({ version, info }: RecordedEngine): EngineScript =>
  (request) => ({ body: request === 'GET /version' ? version : info });

const withInfo = (engine: RecordedEngine, info: object): RecordedEngine => ({
  ...engine,
  info: { ...engine.info, ...info },
});

async function probeOf(script: EngineScript, runtime?: string) {
  await using engine = await ScriptedEngine.start(script);
  return await probeDocker({ endpoint: engine.endpoint, runtime });
}

/** The probe of an engine that can serve. */
async function servingOf(engine: RecordedEngine, runtime?: string) {
  const { probe, host } = await probeOf(play(engine), runtime);
  if (!probe.ok || host === undefined) throw new Error(`cannot serve: ${JSON.stringify(probe)}`);
  return { probe, host };
}

async function problemOf(script: EngineScript, runtime?: string) {
  const { probe, host } = await probeOf(script, runtime);
  if (probe.ok) throw new Error('serves');
  expect(host).toBeUndefined();
  return probe;
}

const factsOf = (facts: readonly { name: string; value: string }[] = []): Record<string, string> =>
  Object.fromEntries(facts.map(({ name, value }) => [name, value]));

afterEach(() => void vi.useRealTimers());

describe('Docker 20.10', () => {
  test('[SC-04] keeps every promise, and says how', async () => {
    const { probe, host } = await servingOf(DOCKER_20);
    expect(probe.runtime).toBe('Docker 20.10.24+dfsg1 with runc');
    expect([unenforced(probe.enforcement), probe.notes]).toEqual([[], []]);
    expect(host).toMatchObject({ runtime: 'runc', ownKernel: false, isPodman: false, mapsUsers: false });
    expect(host.seccomp).toEqual(toSeccompProfile('x64'));
  });

  test('[WB-02] its facts', async () => {
    const { probe, host } = await servingOf(DOCKER_20);
    expect(factsOf(probe.facts)).toEqual({
      engine: `${host.engine.endpoint.label} (docker.host)`,
      cgroups: 'v1, cgroupfs driver',
      runtimes: 'io.containerd.runc.v2, io.containerd.runtime.v1.linux, runc, runsc',
      rootless: 'no',
      disk: '/nonexistent/docker (overlay2)',
    });
  });

  test('[WB-02] the free space of a data root that can be seen', async () => {
    const { probe } = await servingOf(withInfo(DOCKER_20, { DockerRootDir: '/' }));
    expect(factsOf(probe.facts)['disk']).toMatch(/^\/ \(overlay2\), \d+ of \d+ GB free$/);
  });

  test('[SC-03, SC-04] with gVisor, as asked for: its kernel is the wall', async () => {
    const { probe, host } = await servingOf(DOCKER_20, 'runsc');
    expect(probe.runtime).toBe('Docker 20.10.24+dfsg1 with runsc');
    expect(host).toMatchObject({ ownKernel: true, seccomp: undefined });
    expect(probe.enforcement).toMatchObject({
      syscalls: 'hypervisor',
      network: 'hypervisor',
      memoryBytes: 'kernel',
    });
    expect([unenforced(probe.enforcement), probe.notes]).toEqual([[], []]);
  });

  test('[SC-03] whose default runtime is gVisor has that wall without being asked', async () => {
    expect((await servingOf(withInfo(DOCKER_20, { DefaultRuntime: 'runsc' }))).host.ownKernel).toBe(true);
  });

  test.each(['aarch64', 'arm64'])('[SC-03] on %s has the filter of that machine', async (Architecture) => {
    const { host } = await servingOf(withInfo(DOCKER_20, { Architecture }));
    expect(host.seccomp).toEqual(toSeccompProfile('arm64'));
  });

  test.each([
    ['without seccomp', { SecurityOptions: [] }],
    ['that says nothing of it', { SecurityOptions: null }],
    ['with a word that only looks like it', { SecurityOptions: ['name=seccomp-less', 'seccomp'] }],
    ['on a machine that we have no filter for', { Architecture: 'riscv64' }],
  ])('[SC-04] %s filters nothing, and says so', async (_what, info) => {
    const { probe, host } = await servingOf(withInfo(DOCKER_20, info));
    expect(host.seccomp).toBeUndefined();
    expect(unenforced(probe.enforcement)).toEqual(['syscalls']);
    expect(probe.notes.map(({ text }) => text)).toEqual(['system calls are not filtered']);
  });

  test('[SC-03] with users that are mapped may use any id', async () => {
    const options = ['name=seccomp,profile=default', 'name=userns'];
    expect((await servingOf(withInfo(DOCKER_20, { SecurityOptions: options }))).host.mapsUsers).toBe(true);
  });

  test('[WB-02] that cannot limit swap says so', async () => {
    const { probe } = await servingOf(withInfo(DOCKER_20, { SwapLimit: false }));
    expect(probe.notes).toEqual([{ text: 'swap is not limited by this engine' }]);
  });
});

describe('an engine that says nothing of limits', () => {
  test('[SC-04] is not believed to keep any', async () => {
    const { probe } = await servingOf({ version: { Version: '1' }, info: { OSType: 'linux' } });
    expect(unenforced(probe.enforcement)).toEqual(['cpus', 'memoryBytes', 'processes', 'syscalls']);
  });
});

describe('rootless Docker', () => {
  test('[SC-04] keeps no promise about limits where it has no cgroups, and says what would mend it', async () => {
    const { probe, host } = await servingOf(ROOTLESS_DOCKER);
    expect(unenforced(probe.enforcement)).toEqual(['cpus', 'memoryBytes', 'processes']);
    expect(probe.notes).toMatchObject([{ remedy: expect.stringContaining('cgroup v2') as string }]);
    expect(host.mapsUsers).toBe(true);
    expect(factsOf(probe.facts)['rootless']).toBe('yes');
  });
});

describe('Podman', () => {
  test('[SC-04] is known as such, and keeps every promise', async () => {
    const { probe, host } = await servingOf(PODMAN_4);
    expect(probe.runtime).toBe('Podman 4.3.1 with crun');
    expect(host).toMatchObject({ isPodman: true, runtime: 'crun', ownKernel: false, mapsUsers: false });
    expect(host.seccomp).toEqual(toSeccompProfile('x64'));
    expect(unenforced(probe.enforcement)).toEqual([]);
  });

  test('[SC-03] without root maps users', async () => {
    const options = ['name=rootless', 'name=seccomp,profile=default'];
    expect((await servingOf(withInfo(PODMAN_4, { SecurityOptions: options }))).host.mapsUsers).toBe(true);
  });
});

describe('an engine that cannot serve', () => {
  test('[CX-11, WB-02] because its containers are not Linux', async () => {
    expect(await problemOf(play(WINDOWS_CONTAINERS))).toEqual({
      ok: false,
      problem: 'the engine runs windows containers',
      remedy: 'Switch the engine to Linux containers.',
    });
  });

  test.each(['runsx', 'constructor', ''])(
    '[CX-11, SC-03] because it knows no runtime %j',
    async (runtime) => {
      const { problem, remedy } = await problemOf(play(DOCKER_20), runtime);
      expect(problem).toBe(
        `the engine knows no runtime ${runtime}, only io.containerd.runc.v2, io.containerd.runtime.v1.linux, runc, runsc`,
      );
      expect(remedy).toContain('daemon.json');
    },
  );

  test('[CX-11, WB-02] because it is not there', async () => {
    const endpoint = findEndpoint({ host: 'unix:///nonexistent/docker.sock' });
    const { probe } = await probeDocker({ endpoint, runtime: undefined });
    expect(probe).toMatchObject({
      ok: false,
      remedy: expect.stringContaining('systemctl start docker') as string,
    });
    expect(!probe.ok && probe.problem).toContain('the engine at unix:///nonexistent/docker.sock cannot tell');
  });

  test('[CX-11] because it answers with an error', async () => {
    const script: EngineScript = (request) =>
      request === 'GET /version' ? { body: DOCKER_20.version } : { status: 500, body: { message: 'panic' } };
    expect((await problemOf(script)).problem).toBe('the engine cannot describe itself: panic');
  });

  test.each<[string, EngineScript]>([
    ['no JSON', () => ({ body: '<html>welcome</html>' })],
    ['nothing', () => ({ body: '' })],
    ['another thing', () => ({ body: { hello: 'world' } })],
    ['a list', () => ({ body: [] })],
    [
      'a version that is none',
      (request) => ({ body: request === 'GET /version' ? { Version: 5 } : DOCKER_20.info }),
    ],
    ['an info that is none', (request) => ({ body: request === 'GET /version' ? DOCKER_20.version : 'yes' })],
  ])('[CX-11, WB-02] because somebody else is at the socket, who says %s', async (_what, script) => {
    const { problem, remedy } = await problemOf(script);
    expect(problem).toMatch(/^the engine at unix:\/\/\S+ answers with something else than an engine does/);
    expect(remedy).toBe('Check docker.host: an engine must listen there.');
  });

  test('[CX-08, CX-11] because it hangs', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await using engine = await ScriptedEngine.start(() => 'hang');
    const probing = probeDocker({ endpoint: engine.endpoint, runtime: undefined });
    while (engine.asked.length === 0) await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(5000);
    expect((await probing).probe).toMatchObject({
      problem: expect.stringContaining('no answer in 5 s') as string,
    });
  });
});

describe('who keeps which promise', () => {
  const FILTER = { ownKernel: false, seccomp: toSeccompProfile('x64') } satisfies Partial<DockerHost>;
  const ALL = { CpuCfsQuota: true, MemoryLimit: true, PidsLimit: true };

  test('[SC-04] every promise has an answer', () => {
    expect(Object.keys(toEnforcement(FILTER, ALL)).toSorted()).toEqual([...PROMISES].toSorted());
  });

  test.each([
    [{ CpuCfsQuota: false }, ['cpus']],
    [{ MemoryLimit: false }, ['memoryBytes']],
    [{ PidsLimit: false }, ['processes']],
    [{ CpuCfsQuota: false, MemoryLimit: false, PidsLimit: false }, ['cpus', 'memoryBytes', 'processes']],
  ])('[SC-04] an engine with %j keeps all but %j', (missing, promises) => {
    expect(unenforced(toEnforcement(FILTER, { ...ALL, ...missing }))).toEqual(promises);
  });

  test('[SC-04] a kernel of its own counts processes and filters calls by itself', () => {
    const enforcement = toEnforcement({ ownKernel: true, seccomp: undefined }, { ...ALL, PidsLimit: false });
    expect(enforcement).toMatchObject({ processes: 'hypervisor', syscalls: 'hypervisor' });
  });
});
