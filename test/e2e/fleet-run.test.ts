import { lstatSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { inspectContainers, lookAtAgents, type Container, type SeenAgent } from '../support/fleet-cells.ts';
import { DOCKER, FleetCommand, OCI, SUBPROCESS, type FleetEnd } from '../support/fleet-command.ts';
import { describeFleet, viewHost, type HostView } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type TestTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { waitFor } from '../support/leftovers.ts';
import { isRoot, testThatNeeds } from '../support/needs.ts';

const LEVELS = [1, 2, 3];
const WORKERS = [0, 1, 2, 3];
const SECRET = 'sk-hotcell-test-0815';
const MiB = 1024 ** 2;

const idsOf = (level: number): string[] => [1, 2, 3, 4].map((number) => `L${level}-${number}`);

/** Tasks of the first level wait for each other, so that every worker has one; the others count what they find. */
function toGraph(): TestTask[] {
  return LEVELS.flatMap((level) =>
    idsOf(level).map((id, index) =>
      level === 1
        ? toTask(id, level, [['wait', 'go']])
        : toTask(id, level, [], {
            dependencies: [idsOf(level - 1)[index]],
            verification: {
              command: `test -s out/${id}.txt && test "$(ls out | grep -c '^L${level - 1}-')" = 4`,
            },
          }),
    ),
  );
}

/** Installing says who did it, once; copies say the same. */
const PACKAGE = {
  'package.json': JSON.stringify({
    name: 'shop',
    private: true,
    dependencies: { lib: 'file:./lib' },
    scripts: {
      postinstall: `node -e "require('fs').writeFileSync('node_modules/installed', String(process.hrtime.bigint()))"`,
    },
  }),
  'lib/package.json': JSON.stringify({ name: 'lib', version: '1.0.0' }),
};

interface Run {
  readonly repository: FleetRepository;
  readonly command: FleetCommand;
  readonly before: HostView;
  readonly end: FleetEnd;
  /** What `watch` saw while all four worked. */
  readonly seen: unknown;
}

interface Way {
  readonly name: 'docker' | 'oci' | 'subprocess';
  readonly args: readonly string[];
  readonly missing: string | undefined;
  readonly config: Readonly<Record<string, object>>;
  readonly watch: (command: FleetCommand) => Promise<unknown>;
}

const WAYS: readonly Way[] = [
  { name: 'docker', args: DOCKER, missing: whyNoEngine(), config: {}, watch: inspectContainers },
  {
    name: 'oci',
    args: OCI,
    missing: whyNoOci,
    config: {
      resources: { container_memory_limit: '768m', container_cpu_limit: 1.5, container_processes: 300 },
    },
    watch: (command) => Promise.resolve(lookAtAgents(command)),
  },
  { name: 'subprocess', args: SUBPROCESS, missing: undefined, config: {}, watch: () => Promise.resolve() },
];

const runs = new Map<string, Run>();
const stack = new AsyncDisposableStack();

async function runOn(way: Way): Promise<void> {
  const repository = stack.use(
    FleetRepository.make({ tasks: toGraph(), files: PACKAGE, config: way.config }),
  );
  repository.writeAll({
    '.env': 'PORT=4711\n',
    '.git/hooks/post-commit': '#!/bin/sh\ntouch /tmp/hook-ran\n',
  });
  const before = viewHost(repository);
  const command = stack.use(
    FleetCommand.start(repository, ['kurukshetra', ...way.args, '--workers', '4', '--json'], {
      env: {
        ANTHROPIC_API_KEY: SECRET,
        NOT_FOR_WORKERS: 'not for them',
        // Only where it is meant: whoever needs none must not look for one.
        ...(way.name === 'docker' ? { DOCKER_HOST: engineHost() ?? '' } : {}),
      },
    }),
  );
  let seen: unknown;
  const watching = (async () => {
    const isHere = (id: string): boolean => repository.announced(id).length > 0;
    await waitFor(
      `all of level 1 work (${way.name})`,
      () => idsOf(1).every(isHere) || !command.isRunning,
      90_000,
    );
    if (command.isRunning) seen = await way.watch(command);
    repository.mark('go');
  })();
  const [end] = await Promise.all([command.ended, watching]);
  runs.set(way.name, { repository, command, before, end, seen });
}

beforeAll(async () => {
  const ways = WAYS.filter(({ missing }) => missing === undefined);
  if (whyNoEngine() === undefined) await useWorkerImage(stack);
  await Promise.all(ways.map((way) => runOn(way)));
});

afterAll(() => stack.disposeAsync());

function runOf(name: string): Run {
  const run = runs.get(name);
  if (run === undefined) throw new Error(`there is no run with ${name}`);
  return run;
}

/** Files below a folder that hold these bytes. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => lstatSync(path).isFile() && readFileSync(path).includes(text));
}

describe.each(WAYS)('a graph of 3 levels and 12 tasks with 4 workers, $name', ({ name, missing }) => {
  const test = testThatNeeds(missing);

  test('[FL-01, FL-03] ends with 0, and every task is complete at its first attempt', () => {
    const { end, repository } = runOf(name);
    expect({ code: end.code, stderr: end.code === 0 ? '' : end.stderr }).toEqual({ code: 0, stderr: '' });
    const report = JSON.parse(end.stdout) as { outcome: string; tasks: { id: string; status: string }[] };
    expect(report.outcome).toBe('complete');
    expect(report.tasks.map(({ id, status }) => `${id} ${status}`)).toEqual(
      LEVELS.flatMap((level) => idsOf(level).map((id) => `${id} complete`)),
    );
    const state = repository.readState();
    expect(Object.values(state.tasks).map(({ retry_count: failures }) => failures)).toEqual(
      Array(12).fill(0),
    );
    expect(state.mode).toBe(name === 'subprocess' ? 'subprocess' : 'container');
    expect(state.finished_at).toEqual(expect.any(String));
    expect(Object.keys(state.workers)).toEqual(WORKERS.map(String));
    const events = state.execution_log.map(({ event }) => event);
    expect(events.filter((event) => event === 'verification_started')).toHaveLength(12);
    expect(events.filter((event) => event === 'level_complete')).toHaveLength(3);
  });

  test('[FL-01] each worker had a branch of its own and one task of the first level', () => {
    const { repository } = runOf(name);
    const reports = idsOf(1).map((id) => repository.report(id));
    expect(new Set(reports.map(({ worker }) => worker))).toEqual(new Set(WORKERS));
    for (const { worker, branch } of reports) expect(branch).toBe(repository.branch(`worker-${worker}`));
    for (const worker of WORKERS) {
      const branch = repository.branch(`worker-${worker}`);
      // What it did is in the feature branch.
      expect(repository.git('merge-base', '--is-ancestor', branch, repository.branch('staging'))).toBe('');
    }
  });

  test('[FL-05] the feature branch holds every change, and each level began with all of the one before', () => {
    const { repository } = runOf(name);
    const files = repository.git('ls-tree', '-r', '--name-only', repository.branch('staging'), 'out/');
    const ids = LEVELS.flatMap((level) => idsOf(level));
    expect(files.trim().split('\n')).toEqual(ids.map((id) => `out/${id}.txt`));
    expect(repository.countCommits()).toEqual(Object.fromEntries(ids.map((id) => [id, 1])));
    expect(repository.lostCommits()).toEqual([]);
    for (const level of [2, 3]) {
      const earlier = ids.filter((id) => Number(id[1]) < level).map((id) => `out/${id}.txt`.slice(4));
      for (const id of idsOf(level))
        expect(repository.report(id).seen).toEqual(expect.arrayContaining(earlier));
    }
    for (const id of idsOf(1)) expect(repository.report(id).seen).toEqual([]);
    const subject = repository.git(
      'log',
      '-1',
      '--format=%s',
      repository.readState().tasks['L2-3']?.commit ?? '',
    );
    expect(subject.trim()).toBe('Mahabharatha [L2-3]: Write out/L2-3.txt');
  });

  test('[FL-09, FL-05] the repository is as before, byte by byte: git configuration, hooks, index, files, worktrees', () => {
    const { repository, before } = runOf(name);
    expect(viewHost(repository)).toEqual(before);
    expect(repository.git('status', '--porcelain')).toBe('');
    expect(repository.git('fsck', '--no-dangling')).toBe('');
    expect(readdirSync(repository.root).toSorted()).toEqual(
      expect.not.arrayContaining(['out', 'node_modules', 'marks']),
    );
  });

  test('[FL-11] nothing is left: no cell, no process, no cgroup, no mount, no folder', async () => {
    const { repository, command } = runOf(name);
    expect(await describeFleet(repository, [command], name === 'docker' ? 'docker' : 'none')).toEqual([]);
    expect(repository.worktrees()).toEqual([]);
    expect(filesWith(join(repository.root, '.mahabharatha'), 'alternates')).toEqual([]);
    const left = readdirSync(join(repository.root, '.mahabharatha'), { recursive: true, encoding: 'utf8' });
    expect(left.filter((path) => path.startsWith('cells/'))).toEqual(
      expect.not.arrayContaining([expect.stringMatching(/worker|base\.git/)]),
    );
  });

  test('[FL-10, FL-03] every worktree had its copy of .env, and no commit has it', () => {
    const { repository } = runOf(name);
    for (const id of LEVELS.flatMap((level) => idsOf(level)))
      expect(repository.report(id)).toMatchObject({ dotenv: 'PORT=4711\n' });
    const committed = repository.git('log', '--all', '--name-only', '--format=').split('\n');
    expect(committed.filter((path) => /\.env|node_modules|marks/.test(path))).toEqual([]);
    expect(repository.report('L1-1').dropped).toBeUndefined();
  });

  test('[FL-03, FL-16] dependencies are installed once, and copied for the others', () => {
    const { repository } = runOf(name);
    const ids = LEVELS.flatMap((level) => idsOf(level)).map((id) => repository.report(id).installed);
    expect(new Set(ids).size).toBe(1);
    expect(ids[0]).toMatch(/^\d+$/);
  });

  test('[FL-08] the key reaches the agent, and nothing else has it', () => {
    const { repository, end, seen } = runOf(name);
    for (const id of idsOf(3)) expect(repository.report(id).hasKey).toBe(true);
    expect(JSON.stringify({ seen, ...end })).not.toContain(SECRET);
    expect(filesWith(join(repository.root, '.mahabharatha'), SECRET)).toEqual([]);
    expect(repository.git('log', '--all', '-p')).not.toContain(SECRET);
  });
});

describe('the cells of docker', () => {
  const test = testThatNeeds(whyNoEngine());

  test('[FL-01, FL-07, FL-09] have the names, limits and walls that were promised', () => {
    const containers = runOf('docker').seen as Container[];
    expect(containers.map(({ Name }) => Name)).toEqual(WORKERS.map((n) => `/mahabharatha-worker-${n}`));
    for (const { HostConfig, Config } of containers) {
      expect(HostConfig).toMatchObject({
        Memory: 4096 * MiB,
        MemorySwap: 4096 * MiB,
        NanoCpus: 2e9,
        PidsLimit: 1024,
        Privileged: false,
        CapDrop: ['ALL'],
        CapAdd: null,
        NetworkMode: 'none',
        ReadonlyRootfs: true,
        Binds: null,
        PidMode: '',
      });
      expect(HostConfig.SecurityOpt).toContain('no-new-privileges');
      const [uid = 0, gid = 0] = Config.User.split(':').map(Number);
      expect(Math.min(uid, gid)).toBeGreaterThan(0);
      expect([uid, gid]).toEqual(isRoot ? [uid, gid] : [process.getuid?.(), process.getgid?.()]);
    }
    // Started by root, each is somebody else: none can write to what is another one's.
    expect(new Set(containers.map(({ Config }) => Config.User)).size).toBe(isRoot ? 4 : 1);
  });

  test('[FL-09] see the worktree, their git data, the objects of the feature and our guest files: nothing else', () => {
    const { repository, seen } = runOf('docker');
    const at = (...parts: string[]): string => join(repository.root, ...parts);
    const isBounded = whyNoVolumes() === undefined;
    const volumes = new Set<string>();
    for (const { Mounts, Name } of seen as Container[]) {
      const worker = Name.replace('/mahabharatha-', '');
      const cell = at('.mahabharatha/cells/demo', worker);
      const binds = Mounts.filter(({ Type }) => Type === 'bind').map(
        ({ Source, Destination, RW }) =>
          `${Source.replace(/\/[0-9a-f]{12}\/wire$/, '/ID/wire')} ${Destination} ${RW ? 'rw' : 'ro'}`,
      );
      const [volume = ''] =
        /^.*\/volumes\/[0-9a-f]{24}/.exec(binds.find((bind) => bind.includes(' /git ')) ?? '') ?? [];
      volumes.add(volume);
      expect(volume !== '').toBe(isBounded);
      expect(binds.toSorted()).toEqual(
        [
          `${isBounded ? join(volume, 'tree') : at('.mahabharatha-worktrees/demo', worker)} /workspace rw`,
          `${cell}/gitfile /workspace/.git ro`,
          `${isBounded ? volume : cell}/git /git rw`,
          `${at('.mahabharatha/cells/demo/base.git/objects')} /repo/objects ro`,
          // Where its agent speaks; gone from the host since it does.
          `${repository.state}-docker/ID/wire /opt/hotcell/wire ro`,
        ].toSorted(),
      );
      const others = Mounts.filter(({ Type }) => Type !== 'bind');
      expect(others.map(({ Type, RW }) => ({ Type, RW }))).toEqual([{ Type: 'volume', RW: false }]);
    }
    expect(volumes.size).toBe(isBounded ? 4 : 1);
  });
});

describe('the agents in cells of oci', () => {
  const test = testThatNeeds(whyNoOci);

  test('[FL-09, FL-07] are nobody on this machine, without capabilities, and have their limits', () => {
    const agents = runOf('oci').seen as SeenAgent[];
    expect(agents).toHaveLength(4);
    for (const { status, limits } of agents) {
      const ids = [...(status['Uid'] ?? '').split('\t'), ...(status['Gid'] ?? '').split('\t')].map(Number);
      expect(Math.min(...ids)).toBeGreaterThan(0);
      expect(status).toMatchObject({
        CapEff: '0000000000000000',
        CapPrm: '0000000000000000',
        CapBnd: '0000000000000000',
        NoNewPrivs: '1',
        Seccomp: '2',
      });
      expect(limits['memory']).toBe(String(768 * MiB));
      expect(limits['pids']).toBe('300');
      expect(limits['cpu']).toMatch(/^150000( 100000)?$/);
    }
    expect(new Set(agents.map(({ status }) => status['Uid'])).size).toBe(isRoot ? 4 : 1);
  });
});
