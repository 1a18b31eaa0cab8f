import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PreparedFleet } from '../../test/support/prepared-fleet.ts';
import { detachBelow } from '../drivers/volumes/mounts.ts';
import { cleanUp, listAllFeatures, planCleanUp, type CleanUpResult, type CleanUpWish } from './clean-up.ts';
import { HostGit } from './git/host-git.ts';
import { mergeFleet } from './merge-fleet.ts';
import { takeOrchestrator } from './state/orchestrator-lock.ts';

const USUAL: CleanUpWish = { keepLogs: false, keepBranches: false, force: false };
const STAGING = 'mahabharatha/shop/staging';
const worker = (number: number): string => `mahabharatha/shop/worker-${number}`;

let repository: PreparedFleet;
let git: HostGit;
beforeEach(async () => {
  repository = new PreparedFleet();
  git = await HostGit.open(repository.root, process.env);
});
afterEach(() => repository[Symbol.asyncDispose]());

/** Two workers; the first is merged into the feature branch, the second is not, and the target has nothing of it. */
function layOut(): { merged: string; lost: string } {
  const base = repository.git('rev-parse', 'HEAD');
  const merged = repository.branch(worker(0), base, 'a');
  const lost = repository.branch(worker(1), base, 'b');
  repository.git('branch', STAGING, merged);
  repository.state({
    target_branch: 'main',
    tasks: { A: { status: 'complete' }, B: { status: 'failed' } },
  });
  repository.git('worktree', 'add', '--quiet', '.mahabharatha-worktrees/shop/worker-0', worker(0));
  repository.git('worktree', 'add', '--quiet', '.mahabharatha-worktrees/shop/worker-1', worker(1));
  repository.write('.mahabharatha-worktrees/.gitignore', '*\n');
  repository.write('.mahabharatha/cells/shop/worker-0/git/HEAD', 'ref: x\n');
  repository.write('.mahabharatha/logs/workers/worker-0.jsonl', '{}\n');
  repository.write('.mahabharatha/logs/features/shop/tasks/A/claude_output.txt', 'done\n');
  // Of an earlier version.
  repository.write('.mahabharatha/logs/tasks/A/claude_output.txt', 'done\n');
  repository.write('.mahabharatha/artifacts/shop/level-1/lint.json', '{}\n');
  repository.write('.mahabharatha/state/shop-heartbeat-0.json', '{}\n');
  repository.write('.mahabharatha/config.yaml', 'workers: {}\n');
  repository.write('.gsd/specs/shop/requirements.md', 'Status: APPROVED\n');
  return { merged, lost };
}

const run = (wish: Partial<CleanUpWish> = {}, features = ['shop']): Promise<CleanUpResult> =>
  cleanUp(
    { git, reclaim: () => Promise.resolve(['mahabharatha-worker-0']), volumes: { detachBelow } },
    features.map((feature) => repository.paths(feature)),
    { ...USUAL, ...wish },
  );
const branches = (): string[] =>
  repository.git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n');
const has = (path: string): boolean => existsSync(join(repository.root, path));

test('[FL-15] everything of the feature goes; specs, configuration and commits that are nowhere else stay', async () => {
  const { lost, merged } = layOut();
  const config = readFileSync(join(repository.root, '.git/config'));
  // All of it is in main, but for what the second worker has.
  repository.git('update-ref', 'refs/heads/main', merged);
  const { plans, removedCells } = await run();
  expect(removedCells).toEqual(['mahabharatha-worker-0']);
  expect(branches()).toEqual([worker(1), 'main']);
  expect(plans[0]?.kept.map(({ ref, commit }) => [ref, commit])).toEqual([[`refs/heads/${worker(1)}`, lost]]);
  expect(repository.git('worktree', 'list').split('\n')).toHaveLength(1);
  expect(readdirSync(repository.root).toSorted()).toEqual(['.git', '.gsd', '.mahabharatha', 'README.md']);
  expect(readdirSync(join(repository.root, '.mahabharatha/state'))).toEqual([]);
  expect(has('.mahabharatha/cells')).toBe(false);
  expect(has('.mahabharatha/artifacts')).toBe(false);
  expect(has('.mahabharatha/logs/workers')).toBe(false);
  expect(has('.mahabharatha/logs/features')).toBe(false);
  expect(has('.mahabharatha/logs/tasks')).toBe(false);
  expect(has('.mahabharatha/config.yaml')).toBe(true);
  expect(has('.gsd/specs/shop/requirements.md')).toBe(true);
  expect(readFileSync(join(repository.root, '.git/config'))).toEqual(config);
});

test('[FL-15] what is in the target goes with the feature branch, and with force the rest, too', async () => {
  const { merged } = layOut();
  repository.git('update-ref', 'refs/heads/main', merged);
  const plan = await planCleanUp(git, [repository.paths()], USUAL);
  expect(plan[0]?.refs.map(({ ref }) => ref)).toEqual([`refs/heads/${STAGING}`, `refs/heads/${worker(0)}`]);
  await run({ force: true });
  expect(branches()).toEqual(['main']);
});

test('[FL-15] without a target what is checked out counts, and a branch of the feature itself never does', async () => {
  const { merged } = layOut();
  repository.state({ target_branch: STAGING });
  const [own] = await planCleanUp(git, [repository.paths()], USUAL);
  expect(own?.kept.map(({ ref }) => ref)).toContain(`refs/heads/${STAGING}`);
  repository.state({ target_branch: null });
  repository.git('update-ref', 'refs/heads/main', merged);
  const [plan] = await planCleanUp(git, [repository.paths()], USUAL);
  expect(plan?.refs.map(({ ref }) => ref)).toEqual([`refs/heads/${STAGING}`, `refs/heads/${worker(0)}`]);
});

test.each([{}, { keepBranches: true }])(
  '[FL-15] before merge, what merge needs stays: feature branch and state (%j)',
  async (wish) => {
    const { merged, lost } = layOut();
    const state = readFileSync(repository.paths().state, 'utf8');
    const { plans } = await run(wish);
    expect(plans[0]?.kept).toContainEqual({
      ref: `refs/heads/${STAGING}`,
      commit: merged,
      why: expect.stringMatching(/hotcell fleet merge .* needs the state/) as unknown,
    });
    expect(branches()).toEqual(expect.arrayContaining([STAGING, worker(1), 'main']));
    expect(repository.git('rev-parse', STAGING, worker(1)).split('\n')).toEqual([merged, lost]);
    expect(readFileSync(repository.paths().state, 'utf8')).toBe(state);
    expect(has('.mahabharatha-worktrees')).toBe(false);
    expect(has('.mahabharatha/cells')).toBe(false);
    expect(has('.mahabharatha/state/shop-heartbeat-0.json')).toBe(false);
    expect(await mergeFleet({ folder: repository.root, env: process.env, drivers: ['auto'] })).toMatchObject({
      target: 'main',
    });
    await run();
    expect(has('.mahabharatha/state/shop.json')).toBe(false);
    expect(branches()).toEqual([worker(1), 'main']);
  },
);

test('[FL-15] a feature branch that nobody can merge any more keeps no state', async () => {
  const { merged } = layOut();
  rmSync(repository.paths().state);
  repository.write('.mahabharatha/state/shop.json.broken', '{');
  const { plans } = await run();
  expect(plans[0]?.kept.map(({ commit }) => commit)).toContain(merged);
  expect(readdirSync(join(repository.root, '.mahabharatha/state'))).toEqual([]);
});

test('[FL-15] logs and branches stay when asked for', async () => {
  const { merged } = layOut();
  repository.git('update-ref', 'refs/heads/main', merged);
  await run({ keepLogs: true, keepBranches: true });
  expect(branches()).toHaveLength(4);
  expect(has('.mahabharatha/logs/workers/worker-0.jsonl')).toBe(true);
  expect(has('.mahabharatha/logs/features/shop/tasks/A/claude_output.txt')).toBe(true);
  expect(has('.mahabharatha/logs/tasks/A/claude_output.txt')).toBe(true);
  expect(await listAllFeatures(repository.root)).toEqual(['shop']);
  expect(has('.mahabharatha/state/shop.json')).toBe(false);
});

test('[FL-15] a plan changes nothing', async () => {
  layOut();
  const before = repository.git('for-each-ref') + repository.git('worktree', 'list');
  const files = readdirSync(repository.paths().stateFolder);
  const [plan] = await planCleanUp(git, [repository.paths()], { ...USUAL, force: true });
  expect(plan?.worktrees.map((path) => path.slice(-8))).toEqual(['worker-0', 'worker-1']);
  expect(plan?.paths).toContain(repository.paths().state);
  expect(repository.git('for-each-ref') + repository.git('worktree', 'list')).toBe(before);
  expect(readdirSync(repository.paths().stateFolder)).toEqual(files);
});

test('[FL-15] a feature that somebody works on is refused with the pid, and the others are left alone', async () => {
  layOut();
  repository.state({}, 'blog');
  repository.write('.mahabharatha/logs/features/blog/tasks/A/claude_output.txt', 'done\n');
  using hold = takeOrchestrator(repository.paths('blog'));
  const busy = {
    code: 'FLEET_BUSY',
    message: expect.stringContaining(`process ${hold.record.pid}`) as unknown,
  };
  await expect(run({}, ['shop', 'blog'])).rejects.toMatchObject(busy);
  await expect(planCleanUp(git, [repository.paths('blog')], USUAL)).rejects.toMatchObject(busy);
  expect(has('.mahabharatha/state/shop.json')).toBe(true);
  // That of another feature may go on: they share the logs of workers, which stay, and nothing else.
  await run();
  expect(has('.mahabharatha/logs/workers/worker-0.jsonl')).toBe(true);
  expect(has('.mahabharatha/logs/features/shop')).toBe(false);
  expect(has('.mahabharatha/logs/tasks/A')).toBe(false);
  expect(has('.mahabharatha/logs/features/blog/tasks/A/claude_output.txt')).toBe(true);
  expect(has('.mahabharatha/state/blog.json')).toBe(true);
});

test('[FL-15] a branch that the user has checked out stays', async () => {
  layOut();
  rmSync(join(repository.root, '.mahabharatha-worktrees'), { recursive: true });
  repository.git('worktree', 'prune');
  repository.git('checkout', '--quiet', worker(0));
  const { plans } = await run({ force: true });
  expect(branches()).toEqual([worker(0), 'main']);
  expect(plans[0]?.kept).toMatchObject([{ ref: `refs/heads/${worker(0)}` }]);
});

test('[FL-15] links that an agent left lead nowhere, and it can be done twice', async () => {
  layOut();
  const treasure = join(repository.root, 'treasure');
  mkdirSync(treasure);
  repository.write('treasure/gold', 'mine\n');
  symlinkSync(treasure, join(repository.root, '.mahabharatha-worktrees/shop/worker-0/link'));
  symlinkSync(treasure, join(repository.root, '.mahabharatha/cells/shop/link'));
  symlinkSync(treasure, join(repository.root, '.mahabharatha-worktrees/shop/worker-7'));
  await run();
  await run();
  expect(has('treasure/gold')).toBe(true);
  expect(has('.mahabharatha-worktrees')).toBe(false);
});

test('[FL-15] features are found by what they left, also without a state', async () => {
  layOut();
  rmSync(repository.paths().state);
  repository.state({}, 'blog');
  mkdirSync(join(repository.root, '.mahabharatha/cells/mail'), { recursive: true });
  expect(await listAllFeatures(repository.root)).toEqual(['blog', 'mail', 'shop']);
});
