import { describe, expect, test } from 'vitest';
import { DEFAULT_LIMITS, type Limits } from '../../core/limits.ts';
import { MASKED_PATHS, READ_ONLY_PATHS } from '../linux/masked-paths.ts';
import { GVISOR_OVERHEAD } from '../linux/runtime-overhead.ts';
import { toSeccompProfile } from '../linux/seccomp.ts';
import { toCreateBody, type CreateInput } from './create-body.ts';

const MiB = 1024 ** 2;
const INPUT: CreateInput = {
  spec: { name: 'code-runner-lua-00ff', kind: 'run', limits: DEFAULT_LIMITS },
  name: 'code-runner-lua-00fe',
  image: 'lua:5',
  user: { uid: 1_879_048_193, gid: 1_879_048_194 },
  labels: { 'hotcell.owner': 'abc', 'hotcell.process': '{}' },
  guestVolume: 'hotcell-abc',
  wire: undefined,
  runtime: undefined,
  isPodman: false,
  ownKernel: false,
  seccomp: undefined,
};
const PODMAN: Partial<CreateInput> = { isPodman: true };
const GVISOR: Partial<CreateInput> = { ownKernel: true, runtime: 'runsc' };
const EVERYWHERE: [string, Partial<CreateInput>][] = [
  ['Docker', {}],
  ['Podman', PODMAN],
  ['gVisor', GVISOR],
  ['gVisor in Podman', { ...PODMAN, ...GVISOR }],
];

function bodyOf(changes: Partial<CreateInput> = {}) {
  return toCreateBody({ ...INPUT, ...changes });
}

function hostOf(changes: Partial<CreateInput> = {}) {
  const { HostConfig } = bodyOf(changes);
  if (HostConfig === undefined) throw new Error('a container without walls');
  return HostConfig;
}

const withLimits = (limits: Partial<Limits>): Partial<CreateInput> => ({
  spec: { ...INPUT.spec, limits: { ...DEFAULT_LIMITS, ...limits } },
});

describe.each(EVERYWHERE)('walls on %s', (_where, where) => {
  test('[SC-03] no network, a read-only root, no capability, none to be gained', () => {
    expect(hostOf(where)).toMatchObject({ NetworkMode: 'none', ReadonlyRootfs: true, CapDrop: ['ALL'] });
    expect(hostOf(where).SecurityOpt).toContain('no-new-privileges');
  });

  test('[SC-03] nothing that would open them', () => {
    const host = hostOf(where);
    for (const name of [
      'Privileged',
      'CapAdd',
      'Devices',
      'Binds',
      'PidMode',
      'UTSMode',
      'UsernsMode',
      'VolumesFrom',
    ])
      expect(host).not.toHaveProperty(name);
    expect(host.SecurityOpt).not.toContain('seccomp=unconfined');
    expect(bodyOf(where)).not.toHaveProperty('ExposedPorts');
    expect(bodyOf(where)).not.toHaveProperty('Volumes');
  });

  test('[SC-03] a user that is nobody, in a group that is nobodys', () => {
    expect(bodyOf(where).User).toBe('1879048193:1879048194');
  });

  test('[SC-03] what /proc tells about the host is masked or read-only', () => {
    expect(hostOf(where)).toMatchObject({
      MaskedPaths: expect.arrayContaining([...MASKED_PATHS, '/sys/firmware']),
      ReadonlyPaths: READ_ONLY_PATHS,
    });
    expect(MASKED_PATHS).toContain('/proc/kcore');
  });

  test('[SC-03] every place that can be written honours no set-user-id and no device, and has its size', () => {
    for (const options of Object.values(hostOf(where).Tmpfs ?? {})) {
      expect(options.split(',')).toEqual(expect.arrayContaining(['nosuid', 'nodev']));
      expect(options).toMatch(/(^|,)size=\d+(,|$)/);
    }
  });

  test('[CX-12] the guest files are a volume that cannot be written, and the only mount', () => {
    expect(hostOf(where).Mounts).toEqual([
      expect.objectContaining({
        Type: 'volume',
        Source: 'hotcell-abc',
        Target: '/opt/hotcell/guest',
        ReadOnly: true,
      }),
    ]);
    // What the image has in that place must not get into the volume.
    expect(hostOf(where).Mounts?.[0]?.VolumeOptions?.NoCopy).toBe(true);
  });

  test('[SC-02] ends with our connection, and does not come back', () => {
    expect(bodyOf(where)).toMatchObject({ OpenStdin: true, StdinOnce: true, AttachStdin: true, Tty: false });
    expect(hostOf(where).RestartPolicy).toEqual({ Name: 'no' });
  });

  test('[CX-19] nothing is logged by the engine', () => {
    expect(hostOf(where).LogConfig).toEqual({ Type: 'none', Config: {} });
  });

  test('[FL-13] but for lines for people, of which it keeps a bounded number, and the agent speaks elsewhere', () => {
    const body = bodyOf({ ...where, wire: '/run/hotcell-docker/00ff/wire' });
    expect(body.Entrypoint).toEqual([
      'perl',
      '/opt/hotcell/guest/agent.pl',
      '--log',
      '/opt/hotcell/wire/out',
    ]);
    expect(body.HostConfig?.LogConfig).toEqual({
      Type: 'json-file',
      Config: { 'max-size': '1m', 'max-file': '3' },
    });
    expect(body.HostConfig?.Mounts).toContainEqual({
      Type: 'bind',
      Source: '/run/hotcell-docker/00ff/wire',
      Target: '/opt/hotcell/wire',
      ReadOnly: true,
      BindOptions: { Propagation: 'rprivate' },
    });
  });

  test('[SC-03] a check of health that the image brings along does not run', () => {
    expect(bodyOf(where)).toMatchObject({ Healthcheck: { Test: ['NONE'] } });
  });

  test('[CX-12] PID 1 is the agent, whatever the image would start', () => {
    expect(bodyOf(where)).toMatchObject({
      Image: 'lua:5',
      Entrypoint: ['perl', '/opt/hotcell/guest/agent.pl'],
      Cmd: [],
      WorkingDir: '/tmp',
      Env: ['HOME=/tmp', 'LANG=C.UTF-8'],
    });
  });

  test('[CX-13] it has its name and the labels of its owner', () => {
    expect(bodyOf(where)).toMatchObject({
      name: 'code-runner-lua-00fe',
      Hostname: 'code-runner-lua-00fe',
      Labels: {
        'hotcell.owner': 'abc',
        'hotcell.process': '{}',
        'hotcell.kind': 'run',
        'hotcell.name': 'code-runner-lua-00fe',
      },
    });
  });
});

describe('limits', () => {
  const ulimitsOf = (changes: Partial<CreateInput>) =>
    Object.fromEntries((hostOf(changes).Ulimits ?? []).map(({ Name, Soft, Hard }) => [Name, [Soft, Hard]]));

  test.each([128 * MiB, 512 * MiB])('[CX-09] memory of %i bytes, swap included', (memoryBytes) => {
    expect(hostOf(withLimits({ memoryBytes }))).toMatchObject({
      Memory: memoryBytes,
      MemorySwap: memoryBytes,
    });
  });

  test.each([
    [0.5, 500_000_000],
    [2, 2_000_000_000],
    [1 / 3, 333_333_333],
    // The least that engines take.
    [0.001, 10_000_000],
  ])('[CX-09] %d CPUs', (cpus, nano) => {
    expect(hostOf(withLimits({ cpus })).NanoCpus).toBe(nano);
  });

  test('[CX-09] processes', () => {
    expect(hostOf(withLimits({ processes: 33 })).PidsLimit).toBe(33);
  });

  test('[CX-09] open files and core dumps, hard and soft', () => {
    expect(ulimitsOf(withLimits({ openFiles: 99 }))).toEqual({ nofile: [99, 99], core: [0, 0] });
  });

  test.each([
    [64 * MiB, 'rw,nosuid,nodev,exec,mode=1777,size=67108864,nr_inodes=16384'],
    [MiB, 'rw,nosuid,nodev,exec,mode=1777,size=1048576,nr_inodes=1024'],
  ])('[CX-09] /tmp holds %i bytes and a bounded number of files', (diskBytes, options) => {
    expect(hostOf(withLimits({ diskBytes })).Tmpfs?.['/tmp']).toBe(options);
  });

  test('[CX-09] /dev/shm is small, ours, and goes with the cell', () => {
    expect(hostOf().Tmpfs?.['/dev/shm']).toBe(
      'rw,nosuid,nodev,noexec,mode=1777,size=16777216,nr_inodes=4096',
    );
    expect(hostOf()).toMatchObject({ IpcMode: 'none', Sysctls: { 'kernel.shm_rmid_forced': '1' } });
  });

  test('[CX-09] a kernel of its own counts processes itself, and what it needs comes on top', () => {
    const host = hostOf({ ...GVISOR, ...withLimits({ processes: 33, memoryBytes: 100 * MiB }) });
    expect(host.Memory).toBe(100 * MiB + GVISOR_OVERHEAD.memoryBytes);
    expect(host.MemorySwap).toBe(host.Memory);
    expect(host.PidsLimit).toBe(GVISOR_OVERHEAD.threads + 33 * GVISOR_OVERHEAD.threadsPerProcess);
    expect(ulimitsOf({ ...GVISOR, ...withLimits({ processes: 33 }) })).toMatchObject({ nproc: [33, 33] });
    expect(ulimitsOf({ ...GVISOR, ...PODMAN, ...withLimits({ processes: 33 }) })).toMatchObject({
      nproc: [33, 33],
    });
    expect(host).not.toHaveProperty('Sysctls');
  });
});

describe('system calls', () => {
  test('[SC-03] the filter is given as the text that it is', () => {
    const seccomp = JSON.stringify(toSeccompProfile('x64'));
    expect(hostOf({ seccomp }).SecurityOpt).toEqual(['no-new-privileges', `seccomp=${seccomp}`]);
  });

  test('[SC-03] to Podman as the file that it is in', () => {
    expect(hostOf({ ...PODMAN, seccomp: '/run/hotcell/seccomp.json' }).SecurityOpt).toEqual([
      'no-new-privileges',
      'seccomp=/run/hotcell/seccomp.json',
    ]);
  });

  test('without one of ours the filter of the engine stays', () => {
    expect(hostOf().SecurityOpt).toEqual(['no-new-privileges']);
  });
});

describe('where engines differ', () => {
  test.each([
    ['its default', undefined],
    ['runsc', 'runsc'],
    ['kata', 'io.containerd.kata.v2'],
  ])('[SC-03] the runtime class is %s', (_what, runtime) => {
    const host = hostOf({ runtime });
    expect([host.Runtime, 'Runtime' in host]).toEqual([runtime, runtime !== undefined]);
  });

  test('[SC-03] Podman: writable corners of the root are taken, inodes cannot be counted', () => {
    expect(hostOf(PODMAN).Tmpfs).toEqual({
      '/tmp': 'rw,nosuid,nodev,exec,mode=1777,size=67108864',
      '/dev/shm': 'rw,nosuid,nodev,noexec,mode=1777,size=16777216',
      '/run': 'ro,nosuid,nodev,noexec,size=4096',
      '/var/tmp': 'ro,nosuid,nodev,noexec,size=4096',
    });
    expect(Object.keys(hostOf().Tmpfs ?? {})).toEqual(['/tmp', '/dev/shm']);
  });

  test('[CX-09] Podman: a limit of processes for the user that never comes before that of the cell', () => {
    const { PidsLimit = 0, Ulimits = [] } = hostOf(PODMAN);
    const nproc = Ulimits.find(({ Name }) => Name === 'nproc');
    expect(nproc?.Soft).toBe(nproc?.Hard);
    expect(nproc?.Hard).toBeGreaterThan(PidsLimit);
  });

  test('[SC-02] removes itself, but where only the engine can tell how it ended', () => {
    expect([hostOf().AutoRemove, hostOf(PODMAN).AutoRemove, hostOf(GVISOR).AutoRemove]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
