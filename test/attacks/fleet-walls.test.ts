import { existsSync, globSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { whyNoVolumes } from '../../src/drivers/volumes/probe-volumes.ts';
import { TWISTS } from '../support/hostile-git-attack.ts';
import type { Looked } from '../support/hostile-look-attack.ts';
import type { HostileFleet } from '../support/hostile-fleet.ts';
import { HostileSite } from '../support/hostile-site.ts';
import { FLEET_WAYS, inspectContainers, prepareWorkers, settingsOf } from '../support/hostile-ways.ts';
import { waitFor } from '../support/leftovers.ts';
import { describeEach } from '../support/served-by.ts';

const DAEMONS_GONE = `! cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q '[s]leep 987654'`;
const QUIET = 'node hostile-search.ts';
/** Far less than the agent prints. */
const MOST_MEMORY = 400 * 1024 ** 2;
const MOST_ARTIFACT = 5 * 1024 ** 2;
/** What a cell has of its own, by the command lines of our programs and the agent's. */
const OWN = /^(?:perl \S+\/(?:agent|heartbeat|egress)\.pl |node |\S*init |git |sh |bash |$)/;
const TASKS = [
  { id: 'neighbour' },
  { id: 'victim' },
  { id: 'look', verification: QUIET },
  { id: 'break' },
  { id: 'daemon', verification: DAEMONS_GONE },
  { id: 'calm-1', verification: QUIET },
  { id: 'bomb', verification: DAEMONS_GONE },
  { id: 'calm-2', verification: QUIET },
  { id: 'twist' },
  { id: 'graft' },
  { id: 'poison' },
  { id: 'calm-3' },
  { id: 'look-after', level: 2, verification: QUIET },
  { id: 'after', level: 2 },
];

describeEach(FLEET_WAYS, (way) => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());
  let site: HostileSite;
  let before: Record<string, string>;
  let first: HostileFleet;
  let second: HostileFleet;
  let pointers: Record<string, string>;
  let peak = 0;
  let code: number | null;

  beforeAll(async () => {
    await prepareWorkers(way, stack);
    const resources = { container_memory_limit: '512m', container_tmp: '64m', container_processes: 200 };
    site = new HostileSite({
      driver: way.driver,
      settings: settingsOf(way),
      tasks: TASKS,
      config: { resources, quality_gates: [{ name: 'quiet', command: QUIET, required: true }] },
    });
    before = site.snapshot();
    first = site.start('kurukshetra', 3, { MAHABHARATHA_ROUND: '1' });
    const isOpen = (task: string): boolean => site.statusOf(task) !== 'complete' && !first.isOver;
    await waitFor('it has looked around', () => !isOpen('look'));
    pointers = readPointers(site);
    site.go();
    // All but the victim, whose agent only ends for the next orchestrator.
    const others = TASKS.filter(({ id, level }) => level === undefined && id !== 'victim');
    await waitFor('the others are done', () => !others.some(({ id }) => isOpen(id)), 240_000).catch(() => {});
    if (!first.isOver) peak = first.peakBytes();
    await first.end('SIGKILL');
    await waitFor('its cells have ended with it', () => site.inCells().length === 0);
    second = site.start('resume', 3, { MAHABHARATHA_ROUND: '2' });
    code = await second.ended;
  });
  afterAll(() => site[Symbol.asyncDispose]());

  const stateOf = (task: string) => site.readState()?.tasks[task];
  const eventsOf = (task: string): string[] =>
    readFileSync(site.paths.events, 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"${task}"`));

  test('[FL-09, FL-13] the fleet goes on in spite of everything, also after kill -9', () => {
    const open = TASKS.filter(({ id }) => stateOf(id)?.status !== 'complete').map(({ id }) => ({
      id,
      ...stateOf(id),
    }));
    expect({ open, code, words: code === 0 ? '' : second.stderr.slice(-3000) }).toEqual({
      open: [],
      code: 0,
      words: '',
    });
  });

  test.each(['look', 'look-after'])('[FL-08, FL-09] %s: no secret of host or neighbour is found', (task) => {
    const looked = site.report(task) as Looked;
    expect({ found: looked.found, readable: looked.readable }).toEqual({ found: [], readable: [] });
    // It has really looked.
    expect(looked.walked).toBeGreaterThan(1000);
    expect(looked.objects).toBeGreaterThan(10_000);
    expect(looked.folders['/workspace']).toContain('hostile.json');
    expect(looked.commands.filter((line) => !OWN.test(line))).toEqual([]);
    const ofHost = new Set([...listFolder('/root'), ...listFolder('/home')]);
    const seen = [...(looked.folders['/root'] ?? []), ...(looked.folders['/home'] ?? [])];
    expect(
      seen.filter((name) => ofHost.has(name) && !/^\.(?:bashrc|profile|bash_logout)$/.test(name)),
    ).toEqual([]);
  });

  test('[FL-09] of the host’s folders a cell has its own worktree and git data, and no others', () => {
    const { mounts } = site.report('look') as Looked;
    const sources = mounts
      .map((line) => line.split(' ')[3] ?? '')
      .filter((root) => root.startsWith(site.folder));
    const worker = /worker-\d/.exec(sources.join(' '))?.[0] ?? '';
    const cells = join(site.paths.cells, worker);
    const isBounded = whyNoVolumes() === undefined;
    const own = isBounded ? [] : [join(site.paths.worktrees, worker), join(cells, 'git')];
    expect(sources.toSorted()).toEqual(
      [...own, join(cells, 'gitfile'), join(site.paths.cells, 'base.git/objects')].toSorted(),
    );
    if (!isBounded) return;
    const volume = mounts.filter((line) => line.includes('/dev/loop')).map((line) => line.split(' '));
    expect(volume.map(([, , , root, at]) => `${root} ${at}`).toSorted()).toEqual([
      '/git /git',
      '/tree /workspace',
    ]);
    for (const words of volume) expect(words[5]).toMatch(/^rw,nosuid,nodev/);
  });

  test('[FL-09] not root, with nothing to gain', () => {
    const { status } = site.report('look') as Looked;
    const field = (name: string): string => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? '';
    for (const name of ['Uid', 'Gid'])
      for (const id of field(name).split('\t')) expect(Number(id)).toBeGreaterThanOrEqual(1000);
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(Number(`0x${field(set)}`)).toBe(0);
    expect([field('NoNewPrivs'), field('Seccomp')]).toEqual(['1', '2']);
  });

  test('[FL-09] no way out by mounts, namespaces, devices, other users or higher limits', () => {
    const { calls } = site.report('break') as { calls: Record<string, number> };
    expect(Object.keys(calls).length).toBeGreaterThan(50);
    expect(Object.entries(calls).filter(([, error]) => error === 0)).toEqual([]);
  });

  test('[FL-09] nothing can be written but the worktree, its git data and /tmp', () => {
    const { writes } = site.report('break') as { writes: string[] };
    expect(writes).toEqual([]);
  });

  test('[FL-09] pointers, settings, hooks, files and branches of the user are as before, to the byte', () => {
    expect(Object.keys(pointers).length).toBe(3);
    for (const [worker, pointer] of Object.entries(pointers))
      expect(pointer).toBe(`gitdir: ${site.root}/.git/worktrees/${worker}\n`);
    expect(site.snapshot()).toEqual(before);
  });

  test('[FL-09] no program of an agent ran on the host, nor one of the user’s for what agents made', () => {
    expect(readdirSync(site.canary)).toEqual([]);
  });

  test('[FL-09] the repository is sound, and nothing that was refused is in it', () => {
    expect(site.git('fsck', '--strict', '--no-dangling', '--no-progress')).toBe('');
    const failures = eventsOf('twist').filter((line) => line.includes('"task_retry_scheduled"'));
    expect(failures).toHaveLength(TWISTS);
    const words = failures.join('\n');
    for (const said of [
      /hasDotgit/,
      /hasDotdot/,
      /gitmodulesSymlink/,
      /gitmodulesUrl/,
      /rewritten/,
      /of their own/,
    ])
      expect(words).toMatch(said);
    expect(site.git('log', '--branches', '--format=%s')).not.toMatch(/a tree|a new beginning|nobody’s child/);
  });

  test('[FL-13] a task is not done because somebody says so', () => {
    const forged = site
      .git('log', '--all', '--format=%s')
      .split('\n')
      .filter((line) => line.includes('[victim]'));
    // Those of the forger are on its branch; the victim has one of its own as well.
    expect(forged.length).toBeGreaterThan(1);
    expect(site.report('victim')).toMatchObject({ task: 'victim', round: '2' });
    expect(site.report('after')).toMatchObject({ task: 'after', round: '2' });
    const started = eventsOf('victim').filter((line) => line.includes('"task_started"'));
    expect(started.length).toBeGreaterThanOrEqual(2);
    expect(eventsOf('victim').filter((line) => line.includes('"task_complete"'))).toHaveLength(1);
  });

  test('[FL-09] bombs and floods stay inside', () => {
    expect(site.report('bomb')).toEqual({
      flood: 512 * 1024 ** 2,
      memory: 'SIGKILL',
      forks: expect.any(Number),
      tmp: 'ENOSPC',
    });
    expect(peak).toBeGreaterThan(0);
    expect(peak).toBeLessThan(MOST_MEMORY);
    const sizes = globSync(join(site.paths.home, 'logs/**/*')).map((path) => statSync(path).size);
    expect(Math.max(...sizes)).toBeLessThan(MOST_ARTIFACT);
  });

  test('[FL-08] no secret is in anything that the fleet has written or said', () => {
    expect(site.findText(site.prefix, site.paths.home)).toEqual([]);
    expect(site.git('log', '-p', '--format=%H %s', 'main..mahabharatha/demo/staging')).not.toContain(
      site.prefix,
    );
    for (const { stdout, stderr } of [first, second]) expect(stdout + stderr).not.toContain(site.prefix);
  });

  test('[FL-15] names of files and words of agents do not speak to the terminal', () => {
    for (const { stdout, stderr } of [first, second])
      // oxlint-disable-next-line no-control-regex -- Exactly those are meant.
      expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f]/);
  });

  test('[FL-05, FL-09] nothing is left: no process, mount, cell, worktree or private folder', async () => {
    expect(site.remains()).toEqual([]);
    expect(await inspectContainers(way, site.folder)).toEqual([]);
    expect([site.paths.cells, site.paths.worktrees].filter((folder) => existsSync(folder))).toEqual([]);
  });
});

function readPointers(site: HostileSite): Record<string, string> {
  const names = readdirSync(site.paths.worktrees).filter((name) => name.startsWith('worker-'));
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(site.paths.worktrees, name, '.git'), 'utf8')]),
  );
}

function listFolder(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}
