import { describe, expect, test } from 'vitest';
import type { CellSpec } from '../../core/cell.ts';
import { DEFAULT_LIMITS } from '../../core/limits.ts';
import { toCreateBody } from './create-body.ts';

const MiB = 1024 ** 2;
const SESSION: CellSpec = {
  name: 'session-00ff',
  kind: 'session',
  limits: { ...DEFAULT_LIMITS, diskBytes: 64 * MiB },
  lasting: { store: '0123456789ab' },
};

function bodyOf(changes: Partial<CellSpec> = {}) {
  return toCreateBody({
    spec: { ...SESSION, ...changes },
    name: 'session-00ff',
    image: 'lua:5',
    user: { uid: 1_879_048_193, gid: 1_879_048_194 },
    labels: { 'hotcell.keeper': '0123456789ab' },
    guestVolume: 'hotcell-abc',
    wire: undefined,
    runtime: undefined,
    isPodman: false,
    ownKernel: false,
    seccomp: undefined,
  });
}

describe('a cell that lasts', () => {
  test('[RS-22] keeps its input when the server goes, and its agent knows', () => {
    expect(bodyOf()).toMatchObject({
      OpenStdin: true,
      StdinOnce: false,
      Entrypoint: ['perl', '/opt/hotcell/guest/agent.pl', '--lasting'],
    });
  });

  test('[RS-22] names its store and no process that could be found dead', () => {
    expect(bodyOf().Labels).toEqual({
      'hotcell.keeper': '0123456789ab',
      'hotcell.kind': 'session',
      'hotcell.name': 'session-00ff',
    });
  });
});

describe('a workspace', () => {
  test('[RS-13, RS-14] of the host is bound with its own /tmp, and nothing of that is in memory', () => {
    const { HostConfig } = bodyOf({ workspace: { folder: '/volumes/a', owner: 1_879_048_193 } });
    expect(Object.keys(HostConfig?.Tmpfs ?? {})).toEqual(['/dev/shm']);
    expect(HostConfig?.Mounts?.slice(1)).toEqual([
      {
        Type: 'bind',
        Source: '/volumes/a',
        Target: '/workspace',
        ReadOnly: false,
        BindOptions: { Propagation: 'rprivate' },
      },
      {
        Type: 'bind',
        Source: '/volumes/a/.tmp',
        Target: '/tmp',
        ReadOnly: false,
        BindOptions: { Propagation: 'rprivate' },
      },
    ]);
    expect(HostConfig?.ReadonlyRootfs).toBe(true);
  });

  test('[RS-13] in memory has with /tmp no more than the limit', () => {
    const { HostConfig } = bodyOf({ workspace: { folder: undefined, owner: 1_879_048_193 } });
    const sizes = ['/workspace', '/tmp'].map((place) =>
      Number(/size=(\d+)/.exec(HostConfig?.Tmpfs?.[place] ?? '')?.[1]),
    );
    expect(sizes.reduce((sum, size) => sum + size)).toBe(64 * MiB);
    expect(Math.min(...sizes)).toBeGreaterThan(4 * MiB);
    expect(HostConfig?.Mounts).toHaveLength(1);
  });
});

describe('a worker', () => {
  const worker = bodyOf({
    kind: 'worker',
    folders: [
      { name: 'work', folder: '/trees/0', at: '/workspace', writable: true },
      { name: 'pointer', folder: '/cells/0/pointer', at: '/workspace/.git' },
    ],
  });

  test('[FL-09] has the folders of the host in their order, read-only unless it is said', () => {
    const mounts = worker.HostConfig?.Mounts?.slice(1);
    expect(mounts?.map(({ Source, Target, ReadOnly }) => [Source, Target, ReadOnly])).toEqual([
      ['/trees/0', '/workspace', false],
      ['/cells/0/pointer', '/workspace/.git', true],
    ]);
  });

  test('[FL-09, SC-03] is the user and the group that it is told, without any privilege', () => {
    expect(worker).toMatchObject({
      User: '1879048193:1879048194',
      HostConfig: { CapDrop: ['ALL'], ReadonlyRootfs: true, NetworkMode: 'none' },
    });
    expect(worker.HostConfig?.SecurityOpt).toContain('no-new-privileges');
  });

  test('[FL-09] has all of the limit in /tmp', () => {
    expect(worker.HostConfig?.Tmpfs?.['/tmp']).toContain(`size=${64 * MiB},`);
  });
});
