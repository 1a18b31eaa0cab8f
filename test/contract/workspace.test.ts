import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Cell, CellWorkspace } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { findRuntime } from '../../src/drivers/oci/runtime.ts';
import { LoopVolumes } from '../../src/drivers/volumes/loop-volumes.ts';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { ensureBaseImage } from '../support/base-image.ts';
import { engineApi, whyNoEngine } from '../support/docker-engine.ts';
import { mountsIn } from '../support/engine-remains.ts';
import { testThatNeeds } from '../support/needs.ts';
import { makeStateDirectory } from '../support/server.ts';
import { bash, finish } from './cells.ts';
import { firstLine, startChild } from './lasting.ts';
import { DISK_BYTES, lastingSpec, toDriver, type DriverWords } from './lasting-drivers.ts';

const stack = new AsyncDisposableStack();
const directory = mkdtempSync(join(tmpdir(), 'hotcell-volumes-'));
// gVisor looks for what it mounts with the rights of the cell's user.
chmodSync(directory, 0o711);
const stateDirectory = makeStateDirectory();
stack.defer(() => {
  rmSync(directory, { recursive: true, force: true });
  rmSync(stateDirectory, { recursive: true, force: true });
});
const volumes = new LoopVolumes({ directory, keepForMs: 1e9, log: SILENT_LOG });
const missing = whyNoVolumes();

beforeAll(async () => {
  if (missing === undefined) {
    await volumes.prepare();
    stack.defer(() => volumes.close());
  }
  if (whyNoEngine() === undefined) await ensureBaseImage(engineApi().socket);
});
afterAll(() => stack.disposeAsync());

async function run(cell: Cell, script: string): Promise<string> {
  const exec = await cell.exec(bash(script));
  exec.closeStdin();
  const { stdout, stderr } = await finish(exec);
  exec.lasting?.forget();
  return stdout + stderr;
}

const WAYS: readonly { title: string; missing: string | undefined; words: () => DriverWords }[] = [
  ...(await Promise.all(
    (['crun', 'runc', 'runsc'] as const).map(async (runtime) => ({
      title: `oci on ${runtime}`,
      missing: missing ?? ((await findRuntime(runtime)) === undefined ? `no ${runtime}` : undefined),
      words: () => ({ kind: 'oci' as const, runtime, stateDirectory }),
    })),
  )),
  {
    title: 'docker on runc',
    missing: missing ?? whyNoEngine(),
    words: () => ({ kind: 'docker', runtime: 'runc', stateDirectory, socket: engineApi().socket }),
  },
];

for (const way of WAYS) {
  describe(way.title, () => {
    const test = testThatNeeds(way.missing);

    const withCells = async (
      use: (
        make: (project: string) => Promise<Cell>,
        workspaces: Map<string, CellWorkspace>,
      ) => Promise<void>,
    ): Promise<void> => {
      await using cleanUp = new AsyncDisposableStack();
      const workspaces = new Map<string, CellWorkspace>();
      const driver: Driver = toDriver(way.words());
      cleanUp.defer(() => driver.close());
      cleanUp.defer(async () => {
        for (const project of workspaces.keys()) await volumes.release(project, 'nothing');
      });
      const store = randomBytes(6).toString('hex');
      await use(async (project) => {
        const workspace = await volumes.open(project, DISK_BYTES);
        workspaces.set(project, workspace);
        const cell = await driver.create(lastingSpec(store, workspace));
        cleanUp.defer(() => cell.dispose());
        return cell;
      }, workspaces);
    };

    test('[RS-13] the kernel bounds /workspace and /tmp together', () =>
      withCells(async (make) => {
        const cell = await make('full');
        for (const place of ['/workspace', '/tmp']) {
          const said = await run(
            cell,
            `head -c ${2 * DISK_BYTES} /dev/zero >${place}/big; wc -c <${place}/big`,
          );
          expect(said).toContain('No space left on device');
          expect(Number(/^(\d+)$/m.exec(said)?.[1])).toBeLessThan(DISK_BYTES);
          // A write that failed half-way may leave a little room.
          const rest = (folder: string): string => `head -c ${DISK_BYTES} /dev/zero >${folder}/more`;
          const more = await run(cell, `${rest('/workspace')}; ${rest('/tmp')}`);
          expect(more.match(/No space left on device/g)).toHaveLength(2);
          await run(cell, `rm ${place}/big`);
        }
        expect(await run(cell, 'echo x >/workspace/more && echo fine')).toBe('fine\n');
      }));

    test('[RS-14] what the cell makes belongs to the owner of the workspace, and to nobody on the host', () =>
      withCells(async (make, workspaces) => {
        const cell = await make('owned');
        await run(cell, 'mkdir /workspace/p; echo x >/workspace/p/file; echo x >/tmp/file');
        const { folder = '', owner } = workspaces.get('owned') ?? { owner: 0 };
        for (const path of ['p', 'p/file', '.tmp/file']) {
          const { uid, gid } = statSync(join(folder, path));
          expect([uid, gid]).toEqual([owner, owner]);
        }
        // No ls and no stat: gVisor does not know the flags of newer ones.
        expect(await run(cell, '[ -O /workspace/p/file ] && [ -O /tmp/file ] && echo mine')).toBe('mine\n');
      }));

    test('[RS-14, RS-17] cells of one project share files, another one sees nothing of them', () =>
      withCells(async (make) => {
        const [one, other, stranger] = [await make('shared'), await make('shared'), await make('strange')];
        await run(one, 'echo hello >/workspace/note');
        expect(await run(other, 'cat /workspace/note; echo back >/workspace/note')).toBe('hello\n');
        expect(await run(one, 'cat /workspace/note')).toBe('back\n');
        const look = 'echo /workspace/*; grep -rs back /workspace /tmp; true';
        expect(await run(stranger, look)).toBe('/workspace/*\n');
      }));
  });
}

testThatNeeds(missing ?? whyNoEngine())(
  '[SC-04, RS-13] an engine that does not see the mounts of the host gets no cells',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hotcell-unseen-'));
    try {
      const words: DriverWords = {
        kind: 'docker',
        runtime: 'runc',
        stateDirectory,
        socket: engineApi().socket,
      };
      const child = startChild({ words, store: randomBytes(6).toString('hex'), task: 'unseen', folder }, [
        'unshare',
        '--mount',
        '--propagation',
        'private',
      ]);
      const exited = once(child, 'exit');
      expect(await firstLine(child)).toBe('POLICY_UNENFORCEABLE');
      await exited;
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);

testThatNeeds(missing)('[SC-02] nothing of any workspace is left', async () => {
  await volumes.close();
  expect(mountsIn(directory)).toEqual([]);
});
