import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WORKER_TAG } from '../../src/app/fleet/fleet-image.ts';
import { engineApi, engineHost, whyNoEngine } from '../support/docker-engine.ts';
import { FleetCommand, OCI, SUBPROCESS, mahabharatha, type FleetEnd } from '../support/fleet-command.ts';
import { describeFleet, viewHost } from '../support/fleet-remains.ts';
import { FleetRepository, toTask, type TestTask } from '../support/fleet-repository.ts';
import { whyNoOci } from '../support/fleet-ways.ts';
import { useWorkerImage } from '../support/fleet-worker-image.ts';
import { testThatNeeds } from '../support/needs.ts';

const dockerTest = testThatNeeds(whyNoEngine());
const ociTest = testThatNeeds(whyNoOci);

/** No cells of oci either. */
const NO_CELLS = { HOTCELL_ROOTFS: '/no/such/folder' };

const stack = new AsyncDisposableStack();
let repository: FleetRepository;

beforeAll(() => {
  const tasks = [
    toTask('A', 1, [], { estimate_minutes: 10 }),
    toTask('B', 1, [], { estimate_minutes: 20 }),
    toTask('C', 2, [], { estimate_minutes: 5, dependencies: ['A'] }),
  ];
  repository = stack.use(FleetRepository.make({ tasks }));
});
afterAll(() => stack.disposeAsync());

test.each(['run', 'run --dry-run', 'resume', 'plan other passkeys', 'design --force'])(
  '[SC-04] %s takes --weaker as a setting',
  async (words) => {
    const copy = stack.use(repository.copy());
    copy.writeAll({ '.gsd/specs/demo/requirements.md': '# Requirements\n\nStatus: APPROVED\n' });
    const { code, stderr } = await mahabharatha(copy, [...words.split(' '), '--weaker', 'nonsense']);
    expect(code).toBe(78);
    expect(stderr).toContain('--weaker');
  },
);

interface Plan {
  readonly mode: string;
  readonly driver: string;
  readonly mode_reason: string;
}

async function planWith(env: Record<string, string>): Promise<Plan> {
  const { code, stdout, stderr } = await mahabharatha(repository, ['kurukshetra', '--dry-run', '--json'], {
    env,
  });
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
  return JSON.parse(stdout) as Plan;
}

/** The engine of the tests, but for one image, which it does not have. */
async function engineWithoutImage(disposal: AsyncDisposableStack): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-fleet-engine-'));
  disposal.defer(() => rmSync(folder, { recursive: true }));
  const { socket } = engineApi();
  const server = createServer((asked, answer) => {
    if (decodeURIComponent(asked.url ?? '').includes(WORKER_TAG)) {
      answer.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"No such image"}');
      return;
    }
    const { method, url, headers } = asked;
    const sent = request({ socketPath: socket, method, path: url, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 500, reply.headers);
      reply.pipe(answer);
    });
    asked.pipe(sent);
  });
  server.listen(join(folder, 'docker.sock'));
  await once(server, 'listening');
  disposal.defer(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `unix://${join(folder, 'docker.sock')}`;
}

describe('auto', () => {
  dockerTest('[FL-02] takes docker where the engine has the image', async () => {
    await using image = new AsyncDisposableStack();
    await useWorkerImage(image);
    expect(await planWith({ DOCKER_HOST: engineHost() ?? '' })).toMatchObject({
      mode: 'container',
      driver: 'docker',
      mode_reason: 'auto: docker and what the agent needs are there',
    });
  });

  const bothTest = testThatNeeds(whyNoEngine() ?? whyNoOci);
  bothTest('[FL-02] takes oci where the engine has no image, and says so', async () => {
    await using engine = new AsyncDisposableStack();
    const plan = await planWith({ DOCKER_HOST: await engineWithoutImage(engine) });
    expect(plan).toMatchObject({ mode: 'container', driver: 'oci' });
    expect(plan.mode_reason).toContain(`the engine has no image ${WORKER_TAG}`);
  });

  ociTest('[FL-02] takes oci where there is no engine', async () => {
    const plan = await planWith({});
    expect(plan).toMatchObject({ mode: 'container', driver: 'oci' });
    expect(plan.mode_reason).toMatch(/^auto: oci .*\(.*docker/is);
  });

  test('[FL-02] takes plain processes where there is neither, and says why on stderr and in the state', async () => {
    const copy = stack.use(repository.copy());
    const command = FleetCommand.start(copy, ['kurukshetra', '--workers', '2'], { env: NO_CELLS });
    const { code, stderr } = await command.ended;
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    expect(stderr).toContain('mode subprocess (auto: no cells here: ');
    expect(stderr).toContain('NO WALLS');
    const { mode, mode_reason: reason } = copy.readState();
    expect(mode).toBe('subprocess');
    expect(reason).toContain('/no/such/folder does not exist');
    expect(reason).toContain('/nonexistent/docker.sock');
    expect(await describeFleet(copy, [command])).toEqual([]);
  });
});

describe('what is asked for', () => {
  test.for([
    [['--mode', 'container'], NO_CELLS],
    [['--mode', 'container', '--driver', 'docker'], {}],
    [['--mode', 'container', '--driver', 'oci'], NO_CELLS],
  ] as const)('[FL-02] %j without a driver is an error with a hint, and never less', async ([args, env]) => {
    const before = viewHost(repository);
    for (const dry of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await mahabharatha(repository, ['kurukshetra', ...args, ...dry], {
        env,
      });
      expect({ code, stdout }).toEqual({ code: 125, stdout: '' });
      expect(stderr).toContain('mode container is not possible here: ');
      expect(stderr).toContain('  → ');
      expect(stderr).not.toContain('subprocess');
    }
    expect(repository.hasState()).toBe(false);
    expect(repository.git('branch', '--list', 'mahabharatha/*')).toBe('');
    expect(viewHost(repository)).toEqual(before);
  });

  test('[FL-04] --dry-run and --what-if show plan and mode, and make nothing', async () => {
    const fresh = stack.use(FleetRepository.make({ tasks: [toTask('A', 1), toTask('B', 2)] }));
    const list = (): string[] => readdirSync(fresh.root, { recursive: true, encoding: 'utf8' }).toSorted();
    const before = { files: list(), host: viewHost(fresh) };
    const [dry, whatIf, json] = await Promise.all(
      [['--dry-run'], ['--what-if'], ['--what-if', '--json']].map((args) =>
        mahabharatha(fresh, ['kurukshetra', ...SUBPROCESS, '--workers', '2', ...args]),
      ),
    );
    expect(dry).toMatchObject({ code: 0 });
    expect(dry?.stdout).toContain('demo: 2 tasks in 2 levels, 2 workers');
    expect(dry?.stdout).toContain('mode subprocess (as asked for): NO WALLS');
    expect(dry?.stdout).toMatch(/worker 0 +A +Write out\/A\.txt +test -s out\/A\.txt/);
    expect(whatIf?.stdout).toMatch(/^workers +time +faster +busy$/m);
    expect(JSON.parse(json?.stdout ?? '')).toMatchObject({
      feature: 'demo',
      mode: 'subprocess',
      workers: 2,
      what_if: expect.arrayContaining([expect.objectContaining({ workers: 1, speedup: 1 })]),
      levels: [{ level: 1 }, { level: 2 }],
    });
    expect({ files: list(), host: viewHost(fresh) }).toEqual(before);
  });

  test('[FL-04] a graph that is wrong is refused with task and field, before anything is made', async () => {
    const fresh = stack.use(
      FleetRepository.make({
        tasks: [
          toTask('A', 1, [], { files: { create: ['../x'] } }),
          toTask('B', 1, [], { dependencies: ['NOBODY'] }),
        ],
      }),
    );
    const { code, stderr } = await mahabharatha(fresh, ['kurukshetra', ...SUBPROCESS]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/tasks\[1\] \(B\)\.dependencies.*NOBODY/);
    expect(stderr).toMatch(/tasks\[0\] \(A\)\.files\.create\[0\]: must be a path below the repository/);
    expect(fresh.hasState()).toBe(false);
    expect(fresh.git('branch', '--list', 'mahabharatha/*')).toBe('');
  });
});

/** One task for every way in which an agent can end. */
const ENDS: readonly TestTask[] = [
  toTask('OWN', 1, [], {
    script: [
      ['write', 'out/OWN.txt', 'first\n'],
      ['commit', 'Do it myself'],
      ['write', 'out/OWN.txt', 'second\n'],
      ['commit', 'And once more'],
    ],
  }),
  toTask('NOTHING', 1, [['exit', 0, 'I looked around']], { verification: { command: 'true' } }),
  toTask('LOOK', 1, [], { script: [], files: {}, verification: { command: 'test -f agent.mjs' } }),
  toTask('PARTS', 1, [['write', 'out/part.txt', 'one part\n'], ['checkpoint']], {
    files: { create: ['out/PARTS.txt', 'out/part.txt'] },
  }),
  toTask('BLOCKED', 1, [['exit', 3, 'there is no schema to work with']]),
  toTask('ASKS', 1, [['exit', 4, 'which database shall it be?']]),
  toTask('FOREIGN', 1, [['write', 'src/others.txt', 'not mine\n']]),
  toTask('WRONG', 1, [['say', 'it works']], { verification: { command: 'echo the check speaks; exit 9' } }),
  toTask('AFTER', 2),
];
const CONFIG = { workers: { retry_attempts: 1 } };

describe.each([
  { name: 'oci', args: OCI, missing: whyNoOci },
  { name: 'subprocess', args: SUBPROCESS, missing: undefined },
])('what an agent can end with, $name', ({ args, missing }) => {
  const endTest = testThatNeeds(missing);
  let ran: FleetRepository;
  let end: FleetEnd;
  let left: string[] = [];

  beforeAll(async () => {
    if (missing !== undefined) return;
    ran = stack.use(FleetRepository.make({ tasks: ENDS, config: CONFIG }));
    const command = FleetCommand.start(ran, ['kurukshetra', ...args, '--workers', '3']);
    end = await command.ended;
    left = await describeFleet(ran, [command]);
  });

  endTest('[FL-03] one that needs a person stops the level after the others are done: exit 1', () => {
    expect(end.code).toBe(1);
    expect(left).toEqual([]);
    const states = Object.entries(ran.readState().tasks).map(([id, { status }]) => `${id} ${status}`);
    expect(states.toSorted()).toEqual([
      'AFTER pending',
      'ASKS blocked',
      'BLOCKED blocked',
      'FOREIGN complete',
      'LOOK complete',
      'NOTHING failed',
      'OWN complete',
      'PARTS complete',
      'WRONG failed',
    ]);
    expect(ran.readState()).toMatchObject({ paused: true, levels: { 1: { status: 'failed' } } });
    // Not merged: the branch is where it began.
    expect(ran.git('rev-parse', ran.branch('staging'))).toBe(ran.git('rev-parse', 'main'));
    expect(end.stderr).toContain('hotcell fleet retry --all-failed --feature demo');
    expect(end.stdout).toMatch(/^ASKS +blocked/m);
    expect(ran.lostCommits()).toEqual([]);
  });

  endTest('[FL-03] blocked (3) and escalation (4) tell what the agent said', () => {
    const { tasks } = ran.readState();
    expect(tasks['BLOCKED']).toMatchObject({ exit_code: 3, error: 'there is no schema to work with' });
    expect(tasks['ASKS']).toMatchObject({ exit_code: 4, error: 'which database shall it be?' });
    expect(ran.events()).toEqual(expect.arrayContaining(['task_blocked', 'escalation']));
    expect(end.stderr).toContain('ASKS needs a person: which database shall it be?');
  });

  endTest('[FL-03] a checkpoint (2) is committed, and the same worker goes on from there', () => {
    const task = ran.task('PARTS');
    const report = ran.report('PARTS', task?.commit ?? '');
    expect(report).toMatchObject({
      goesOn: true,
      attempt: 1,
      worker: task?.worker_id,
      seen: expect.arrayContaining(['part.txt']),
    });
    const log = ran.git('log', '--format=%s', `main..${task?.commit ?? ''}`);
    expect(log).toContain('WIP: Write out/PARTS.txt');
    expect(log).toContain('Mahabharatha [PARTS]: Write out/PARTS.txt');
  });

  endTest('[FL-03] commits of the agent itself are kept as they are', () => {
    const commit = ran.task('OWN')?.commit ?? '';
    expect(ran.git('log', '-2', '--format=%s', commit)).toBe('And once more\nDo it myself\n');
    expect(ran.git('show', `${commit}:out/OWN.txt`)).toBe('second\n');
  });

  endTest('[FL-03] whoever owns files and changes none has failed; whoever owns none may look only', () => {
    const error = "the agent changed nothing\nThe agent's last words: I looked around";
    expect(ran.task('NOTHING')).toMatchObject({ retry_count: 2, error });
    expect(ran.task('LOOK')).toMatchObject({ retry_count: 0, changed_files: [] });
    expect(ran.task('WRONG')?.error).toBe(
      "the verification ended with 9: the check speaks\nThe agent's last words: it works",
    );
    // Whoever watches the run reads it, too, and so does who asks afterwards.
    for (const text of [end.stderr, end.stdout])
      expect(text).toContain("the check speaks The agent's last words: it works");
    expect(ran.countCommits()).not.toHaveProperty('WRONG');
  });

  endTest('[FL-04] files that a task does not own are named, unless it is only to warn: then also', () => {
    expect(ran.task('FOREIGN')).toMatchObject({ status: 'complete', foreign_files: ['src/others.txt'] });
    expect(end.stdout).toContain('FOREIGN changed files that it does not own: src/others.txt');
  });
});

test('[FL-04] ownership: enforce refuses a commit with files that the task does not own', async () => {
  const words = 'I mended the others, too';
  const tasks = [
    toTask('FOREIGN', 1, [
      ['write', 'src/others.txt', 'not mine\n'],
      ['say', words],
    ]),
  ];
  const strict = stack.use(
    FleetRepository.make({ tasks, config: { ownership: 'enforce', workers: { retry_attempts: 0 } } }),
  );
  const { code } = await mahabharatha(strict, ['kurukshetra', ...SUBPROCESS, '--workers', '1']);
  expect(code).toBe(1);
  expect(strict.task('FOREIGN')).toMatchObject({
    status: 'failed',
    error: `the task does not own src/others.txt\nThe agent's last words: ${words}`,
  });
  expect(strict.git('ls-tree', '-r', '--name-only', strict.branch('staging'))).not.toContain('others.txt');
});
