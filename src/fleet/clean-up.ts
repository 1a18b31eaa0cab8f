import { readdir, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { removeTree } from './git/hostile-tree.ts';
import { lineOf, splitNul, type HostGit } from './git/host-git.ts';
import { findCommit, isAncestor, toRef } from './git/refs.ts';
import { findCheckout, removeWorktree } from './git/worktrees.ts';
import { featureBranch, sharedTaskFolder, type FleetPaths } from './names.ts';
import { isFeatureName, listFeatures } from './state/features.ts';
import { requireNoOrchestrator, takeOrchestrator } from './state/orchestrator-lock.ts';
import { StateStore } from './state/state-store.ts';
import type { VolumeMaker } from './worktree-volumes.ts';

export interface CleanUpWish {
  readonly keepLogs?: boolean;
  readonly keepBranches?: boolean;
  /** Also branches with commits that are nowhere else, and what `merge` would need. */
  readonly force?: boolean;
}

export interface DoomedRef {
  readonly ref: string;
  readonly commit: string;
}

export interface KeptRef extends DoomedRef {
  readonly why: string;
}

/** What goes, and what stays although it could have gone. Specs and configuration never go. */
export interface CleanUpPlan {
  readonly feature: string;
  readonly worktrees: readonly string[];
  readonly refs: readonly DoomedRef[];
  readonly kept: readonly KeptRef[];
  /** Files and folders. */
  readonly paths: readonly string[];
}

export interface CleanUpParts {
  readonly git: HostGit;
  /** Removes the cells of dead orchestrators and names them. */
  reclaim(): Promise<string[]>;
  readonly volumes: Pick<VolumeMaker, 'detachBelow'>;
}

export interface CleanUpResult {
  readonly plans: readonly CleanUpPlan[];
  readonly removedCells: readonly string[];
}

/** What `cleanUp` would do. Throws FLEET_BUSY, as it would. */
export async function planCleanUp(
  git: HostGit,
  features: readonly FleetPaths[],
  wish: CleanUpWish,
): Promise<CleanUpPlan[]> {
  for (const paths of features) requireNoOrchestrator(paths);
  const plans: CleanUpPlan[] = [];
  for (const paths of features) plans.push(await planFeature(git, paths, { ...wish, features }));
  return plans;
}

/** Removes everything of these features but specs and commits. Nobody can work on them meanwhile. */
export async function cleanUp(
  parts: CleanUpParts,
  features: readonly FleetPaths[],
  wish: CleanUpWish,
): Promise<CleanUpResult> {
  using holds = new DisposableStack();
  // All or none: one that is being worked on refuses the rest, too.
  for (const paths of features) holds.use(takeOrchestrator(paths, { mode: 'cleanup' }));
  const removedCells = await parts.reclaim();
  const plans: CleanUpPlan[] = [];
  for (const paths of features) {
    await parts.volumes.detachBelow([paths.worktrees, paths.cells]);
    const plan = await planFeature(parts.git, paths, { ...wish, features });
    await carryOut(parts.git, paths, plan);
    plans.push(plan);
  }
  return { plans, removedCells };
}

interface Planned extends CleanUpWish {
  /** All that are cleaned up together. */
  readonly features: readonly FleetPaths[];
}

async function planFeature(git: HostGit, paths: FleetPaths, wish: Planned): Promise<CleanUpPlan> {
  const { doomed, kept, isForMerge } = await judgeRefs(git, paths, wish.force === true);
  const keepsBranches = wish.keepBranches === true;
  return {
    feature: paths.feature,
    worktrees: await listWorktrees(git, paths),
    refs: keepsBranches ? [] : doomed,
    kept: keepsBranches
      ? kept.filter(({ ref }) => isForMerge && ref === toRef(featureBranch(paths.feature)))
      : kept,
    paths: [
      ...(await present([paths.cells, paths.checkResults])),
      ...(wish.keepLogs === true ? [] : await listLogs(paths, wish.features)),
      ...(await listStateFiles(paths, { logs: wish.keepLogs === true, state: isForMerge })),
    ],
  };
}

async function carryOut(git: HostGit, paths: FleetPaths, plan: CleanUpPlan): Promise<void> {
  for (const path of plan.worktrees) await removeWorktree(git, path);
  await removeTree(git, paths.worktrees);
  await removeIfEmpty(dirname(paths.worktrees));
  for (const { ref, commit } of plan.refs) await git.run(['update-ref', '-d', ref, commit]);
  // The state last: whoever is interrupted can begin again.
  for (const path of plan.paths) {
    if (path === paths.cells) await removeTree(git, path);
    else await rm(path, { recursive: true, force: true });
  }
  for (const folder of [paths.cells, paths.checkResults, paths.featureLogs])
    await rmdir(dirname(folder)).catch(() => {});
}

/** Those that exist, and those that git still knows of. */
async function listWorktrees(git: HostGit, paths: FleetPaths): Promise<string[]> {
  const names = await namesIn(paths.worktrees);
  const known = splitNul(await git.run(['worktree', 'list', '--porcelain', '-z']))
    .filter((line) => line.startsWith('worktree '))
    .map((line) => line.slice('worktree '.length));
  const ours = known.filter((path) =>
    [paths.worktrees, paths.cells].some((folder) => path.startsWith(`${folder}/`)),
  );
  return [...new Set([...names.map((name) => join(paths.worktrees, name)), ...ours])].toSorted();
}

const NOWHERE_ELSE = 'it has commits that are nowhere else; --force removes it all the same';
const NOT_MERGED =
  'hotcell fleet merge has not carried it into your branch, and needs the state, which stays, too; --force removes both';

interface JudgedRefs {
  readonly doomed: readonly DoomedRef[];
  readonly kept: readonly KeptRef[];
  /** The feature branch has something for the target: `merge` will want the state, too. */
  readonly isForMerge: boolean;
}

/** A ref goes when all its commits are in the target, or, for those of workers, in a feature branch that stays. */
async function judgeRefs(git: HostGit, paths: FleetPaths, force: boolean): Promise<JudgedRefs> {
  const { feature } = paths;
  const state = new StateStore(paths).read();
  const target = await findTarget(git, feature, state?.target_branch ?? undefined);
  const main = toRef(featureBranch(feature));
  const whole = await findCommit(git, main);
  const doomed: DoomedRef[] = [];
  const kept: KeptRef[] = [];
  let isForMerge = false;
  for (const { ref, commit } of await listRefs(git, feature)) {
    const homes = [target, ref === main ? undefined : whole].filter((home) => home !== undefined);
    const isSafe = await isIn(git, commit, homes);
    const isUnmerged = ref === main && !isSafe && !force && state !== undefined;
    isForMerge ||= isUnmerged;
    const checkout = await findCheckout(git, ref);
    const isElsewhere =
      checkout !== undefined &&
      !checkout.startsWith(`${paths.worktrees}/`) &&
      !checkout.startsWith(`${paths.cells}/`);
    if (isElsewhere) kept.push({ ref, commit, why: `it is checked out in ${checkout}` });
    else if (isSafe || force) doomed.push({ ref, commit });
    else kept.push({ ref, commit, why: isUnmerged ? NOT_MERGED : NOWHERE_ELSE });
  }
  return { doomed, kept, isForMerge };
}

/** The branch that `merge` leads into, or what is checked out. One of the feature's own is no home: it may go itself. */
async function findTarget(
  git: HostGit,
  feature: string,
  branch: string | undefined,
): Promise<string | undefined> {
  if (branch !== undefined && toRef(branch).startsWith(`refs/heads/mahabharatha/${feature}/`))
    return undefined;
  if (branch !== undefined) return findCommit(git, branch);
  return lineOf(await git.run(['rev-parse', '--verify', 'HEAD^{commit}']));
}

async function isIn(git: HostGit, commit: string, homes: readonly string[]): Promise<boolean> {
  for (const home of homes) if (await isAncestor(git, commit, home)) return true;
  return false;
}

async function listRefs(git: HostGit, feature: string): Promise<DoomedRef[]> {
  const text = await git.run([
    'for-each-ref',
    '--format=%(refname) %(objectname)',
    `refs/heads/mahabharatha/${feature}/`,
    `refs/mahabharatha/${feature}/`,
  ]);
  return text
    .split('\n')
    .map((line) => line.split(' '))
    .flatMap(([ref = '', commit = '']) => (ref === '' ? [] : [{ ref, commit }]));
}

/** Logs of workers are shared by all features of the repository: they stay as long as another one has a state. */
async function listLogs(paths: FleetPaths, cleaned: readonly FleetPaths[]): Promise<string[]> {
  const gone = new Set(cleaned.map(({ feature }) => feature));
  const others = listFeatures(paths.root).filter((feature) => !gone.has(feature));
  const tasks = Object.keys(new StateStore(paths).read()?.tasks ?? {});
  const shared =
    others.length === 0
      ? [paths.workerLogs, paths.sharedTaskLogs]
      : tasks.map((task) => sharedTaskFolder(paths, task));
  return present([paths.featureLogs, ...shared]);
}

/** The state and what stands beside it under its name; the lock that we hold comes last. Of a state that stays so does all but heartbeats. */
async function listStateFiles(
  paths: FleetPaths,
  keep: { readonly logs: boolean; readonly state: boolean },
): Promise<string[]> {
  const { feature } = paths;
  const own = new Set(
    ['.json', '.lock', '.orchestrator.json', '.orchestrator.lock', '-events.jsonl', '-planning.json']
      .flatMap((suffix) => [
        suffix,
        `${suffix}.tmp`,
        `${suffix}.bak`,
        `${suffix}.bak.tmp`,
        `${suffix}.broken`,
      ])
      .map((suffix) => `${feature}${suffix}`),
  );
  const names = (await namesIn(paths.stateFolder)).filter(
    (name) => (own.has(name) && !keep.state) || isHeartbeat(name, feature),
  );
  return names
    .map((name) => join(paths.stateFolder, name))
    .filter((path) => !(keep.logs && path === paths.events))
    .toSorted(
      (one, other) => Number(one === paths.orchestratorLock) - Number(other === paths.orchestratorLock),
    );
}

function isHeartbeat(name: string, feature: string): boolean {
  return name.startsWith(feature) && /^-heartbeat-\d+\.json/.test(name.slice(feature.length));
}

async function present(paths: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const names = await namesIn(dirname(path));
    if (names.includes(basename(path))) found.push(path);
  }
  return found;
}

/** Every feature that has left something: a state, worktrees, folders of cells or logs. */
export async function listAllFeatures(root: string): Promise<string[]> {
  const folders = ['.mahabharatha-worktrees', '.mahabharatha/cells', '.mahabharatha/logs/features'];
  const names = (await Promise.all(folders.map((folder) => namesIn(join(root, folder)))))
    .flat()
    .filter(isFeatureName);
  return [...new Set([...listFeatures(root), ...names])].toSorted();
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** Only what hides it from git is left in it. */
async function removeIfEmpty(folder: string): Promise<void> {
  const names = await namesIn(folder);
  if (names.some((name) => name !== '.gitignore')) return;
  await unlink(join(folder, '.gitignore')).catch(() => {});
  await rmdir(folder).catch(() => {});
}
