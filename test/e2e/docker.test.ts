import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findEndpoint } from '../../src/drivers/docker/endpoint.ts';
import { Engine } from '../../src/drivers/docker/engine.ts';
import type { LanguagesReply } from '../../src/wire/execute.ts';
import { BASE_IMAGE } from '../support/base-image.ts';
import { engineApi, engineHost } from '../support/docker-engine.ts';
import { deriveImage, removeImage } from '../support/engine-images.ts';
import { cellsOf, describeFootprint, footprintOf } from '../support/footprint.ts';
import {
  countMarked,
  expectServes,
  makeMarker,
  runCode,
  settle,
  startServer,
  stopClean,
} from '../support/live-server.ts';
import { waitFor } from '../support/leftovers.ts';
import { PROGRAMS } from '../support/programs.ts';
import { DOCKER_FRESH, DOCKER_SHARED, describeEach, type Way } from '../support/served-by.ts';
import type { TestServer } from '../support/server.ts';

const DOCKER_WAYS: readonly Way[] = [DOCKER_FRESH, DOCKER_SHARED];
const MiB = 1024 * 1024;
const ONE_CELL = ['--set', 'pool.size=1'];
/** Only what a test uses: every language costs a container. */
const NO_OTHERS = { python: false, ruby: false, javascript: false, typescript: false };

/** As much of `docker inspect` as says what a container may do. */
interface Inspected {
  readonly Id: string;
  readonly Config: { readonly User: string; readonly Env: string[] };
  readonly HostConfig: Record<string, unknown> & { readonly SecurityOpt: string[] };
  readonly Mounts: { readonly Type: string; readonly RW: boolean; readonly Destination: string }[];
}

async function inspectCells(server: TestServer): Promise<Inspected[]> {
  const cells = await cellsOf(server);
  return Promise.all(cells.map(({ id }) => engineApi().call<Inspected>('GET', `/containers/${id}/json`)));
}

function killContainer(id: string): Promise<void> {
  return engineApi().call('POST', `/containers/${id}/kill`);
}

describeEach(DOCKER_WAYS, (way) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({ way });
    await settle(server);
  });
  afterAll(() => stopClean(server));

  describe('docker inspect', () => {
    test('[CX-09, SC-03] every cell has its limits and its walls', async () => {
      const cells = await inspectCells(server);
      expect(cells.length).toBeGreaterThanOrEqual(PROGRAMS.length);
      for (const { HostConfig: host } of cells) {
        expect(host).toMatchObject({
          Memory: 256 * MiB,
          MemorySwap: 256 * MiB,
          NanoCpus: 500_000_000,
          PidsLimit: 64,
          NetworkMode: 'none',
          ReadonlyRootfs: true,
          Privileged: false,
          CapDrop: ['ALL'],
          CapAdd: null,
          PidMode: '',
          UTSMode: '',
          Devices: null,
          Binds: null,
          RestartPolicy: { Name: 'no' },
          AutoRemove: true,
          Sysctls: { 'kernel.shm_rmid_forced': '1' },
        });
        expect(host['IpcMode']).toBe('none');
        expect(host['Ulimits']).toEqual(
          expect.arrayContaining([
            { Name: 'nofile', Hard: 1024, Soft: 1024 },
            { Name: 'core', Hard: 0, Soft: 0 },
          ]),
        );
      }
    });

    test('[SC-03] no new privileges, and our own filter of system calls', async () => {
      for (const { HostConfig: host } of await inspectCells(server)) {
        expect(host.SecurityOpt).toContain('no-new-privileges');
        const filter = host.SecurityOpt.find((option) => option.startsWith('seccomp='));
        const profile = JSON.parse(filter?.slice('seccomp='.length) ?? '{}') as Record<string, unknown>;
        expect(profile['defaultAction']).toBe('SCMP_ACT_ERRNO');
      }
    });

    test('[SC-03] nobody is root, and no two cells are the same user', async () => {
      const users = (await inspectCells(server)).map(({ Config }) => Config.User);
      for (const user of users) expect(user).toMatch(/^(\d{9,10}):\1$/);
      expect(new Set(users).size).toBe(users.length);
    });

    test('[SC-03, CX-19] the only mount is the one with our guest files, read-only; no variable is the host’s', async () => {
      for (const { Mounts: mounts, Config } of await inspectCells(server)) {
        expect(mounts.map(({ Type, RW }) => ({ Type, RW }))).toEqual([{ Type: 'volume', RW: false }]);
        const names = Config.Env.map((variable) => variable.split('=')[0]);
        expect(names.filter((name) => !['HOME', 'LANG', 'PATH'].includes(name ?? ''))).toEqual([]);
      }
    });
  });

  describe('docker kill', () => {
    test('[CX-16, SC-02] of every waiting cell: replaced, and nobody notices', async () => {
      await settle(server);
      const killed = (await cellsOf(server)).map(({ id }) => id);
      await Promise.all(killed.map(killContainer));
      const answers = await Promise.all(
        PROGRAMS.map(({ language, exit7 }) => server.execute(language, { code: exit7 })),
      );
      expect(answers.map(({ status, body }) => [status, body.exit_code])).toEqual(
        PROGRAMS.map(() => [200, 7]),
      );
      await settle(server);
      const now = (await cellsOf(server)).map(({ id }) => id);
      expect(now.filter((id) => killed.includes(id))).toEqual([]);
      expect((await server.health()).status).toBe('ok');
    });

    test('[CX-16, CX-08] of a cell in the middle of a run: run again in another one', async () => {
      const marker = makeMarker();
      const pending = runCode(server, 'bash', `sleep 1.${marker}; echo "$HOSTNAME" survived`);
      await waitFor('it runs', () => countMarked(marker) > 0);
      const cells = (await cellsOf(server)).filter(({ name }) => name.startsWith('code-runner-bash-'));
      await Promise.all(cells.map(({ id }) => killContainer(id)));
      const reply = await pending;
      expect(reply).toMatchObject({ exit_code: 0, stdout: expect.stringMatching(/ survived\n$/) });
      expect(cells.map(({ id }) => id.slice(0, 12))).not.toContain(reply.container_id);
      await expectServes(server);
    });

    test('[CX-16] of the container when somebody removes it altogether', async () => {
      await settle(server);
      const cells = (await cellsOf(server)).filter(({ name }) => name.startsWith('code-runner-bash-'));
      await Promise.all(cells.map(({ id }) => engineApi().call('DELETE', `/containers/${id}?force=1`)));
      await expectServes(server);
    });
  });
});

describeEach([DOCKER_SHARED], (way) => {
  describe('two servers on one engine', () => {
    test('[CX-13, CX-18] each has its own things, and takes only those with it', async () => {
      const [one, other] = await Promise.all([
        startServer({ way, args: ONE_CELL }),
        startServer({ way, args: ONE_CELL }),
      ]);
      await Promise.all([settle(one, 1), settle(other, 1)]);
      const owners = await Promise.all(
        [one, other].map(async (server) => new Set((await cellsOf(server)).map(({ owner }) => owner))),
      );
      expect(owners.map(({ size }) => size)).toEqual([1, 1]);
      expect([...(owners[0] ?? [])]).not.toEqual([...(owners[1] ?? [])]);
      const before = await describeFootprint(await footprintOf(other));
      // Containers, a volume and processes: what must stay is there.
      expect(before.filter((words) => /^(container|volume) /.test(words)).length).toBe(PROGRAMS.length + 1);
      await stopClean(one, 1);
      expect(await describeFootprint(await footprintOf(other))).toEqual(before);
      await expectServes(other);
      await stopClean(other, 1);
    });
  });

  describe('images', () => {
    const OWN_IMAGE = 'hotcell-test-language:latest';
    let engine: Engine;
    let server: TestServer;
    beforeAll(async () => {
      engine = await Engine.connect(findEndpoint({ host: engineHost() }));
      const shout = '\'#!/bin/sh\\ntr a-z A-Z <"$1"\\n\'';
      await way.prepare();
      await deriveImage(
        engine,
        OWN_IMAGE,
        `printf ${shout} >/usr/local/bin/shout && chmod 755 /usr/local/bin/shout`,
      );
      const languages = {
        ...NO_OTHERS,
        shout: { extension: 'txt', command: ['shout', '{filepath}'], image: OWN_IMAGE },
        // Nobody listens there, so that a pull fails at once.
        ghost: { extension: 'txt', command: ['cat', '{filepath}'], image: '127.0.0.1:1/nobody:1' },
        imageless: { extension: 'txt', command: ['cat', '{filepath}'] },
      };
      server = await startServer({ way, env: { HOTCELL_LANGUAGES: JSON.stringify(languages) } });
    });
    afterAll(async () => {
      await stopClean(server, 0);
      await removeImage(engine, OWN_IMAGE);
    });

    test('[CX-02] a language that configuration alone has added runs in its own image', async () => {
      const reply = await runCode(server, 'shout', 'hello');
      expect(reply).toMatchObject({ stdout: 'HELLO', exit_code: 0, image_name: OWN_IMAGE });
      // It is really that image: another one has no such program.
      expect(OWN_IMAGE).not.toBe(BASE_IMAGE);
      expect((await runCode(server, 'bash', 'command -v shout')).exit_code).toBe(1);
    });

    test('[CX-08, CX-15] an image that cannot be had is told by its language; the others serve', async () => {
      const { status, body } = await server.execute('ghost', { code: 'x' });
      expect({ status, code: body.code, exitCode: body.exit_code }).toEqual({
        status: 503,
        code: 'IMAGE_UNAVAILABLE',
        exitCode: -1,
      });
      expect(body.detail).toContain('127.0.0.1:1/nobody:1');
      expect(body.hint).not.toBe('');
      const { languages } = (await (await fetch(`${server.url}/languages`)).json()) as LanguagesReply;
      expect(languages.find(({ name }) => name === 'ghost')).toMatchObject({
        available: false,
        problem: expect.stringContaining('127.0.0.1:1/nobody:1'),
      });
      expect(await runCode(server, 'bash', 'echo fine')).toMatchObject({ stdout: 'fine\n', exit_code: 0 });
      expect(await server.health()).toMatchObject({
        status: 'degraded',
        containers: { bash: 'running', shout: 'running', ghost: 'stopped' },
        problem: null,
      });
    });

    test('[CX-08] a language without an image says what it lacks', async () => {
      const { status, body } = await server.execute('imageless', { code: 'x' });
      expect({ status, code: body.code }).toEqual({ status: 503, code: 'IMAGE_UNAVAILABLE' });
      expect(body.detail + body.hint).toContain('image');
    });
  });
});
