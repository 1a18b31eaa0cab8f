import type { FleetState, TaskState } from '../fleet-state.ts';
import type { HostGit } from '../git/host-git.ts';
import { acceptedRef } from '../git/linked-git.ts';
import { findCommit, isAncestor } from '../git/refs.ts';
import { timeOf } from '../state/led-time.ts';
import { workerBranch } from '../names.ts';
import { ACTIVE } from './schedule.ts';
import { completeTask, pauseTask } from './task-changes.ts';

/** The branches of all workers that there ever were, in the order of their numbers. */
export async function listWorkerBranches(
  git: HostGit,
  feature: string,
): Promise<{ worker: number; branch: string }[]> {
  const prefix = workerBranch(feature, 0).slice(0, -1);
  const text = await git.run(['for-each-ref', '--format=%(refname:short)', `refs/heads/${prefix}*`]);
  return text
    .split('\n')
    .map((branch) => ({ branch, worker: Number(branch.slice(prefix.length)) }))
    .filter(({ branch, worker }) => branch !== '' && branch === workerBranch(feature, worker))
    .toSorted((a, b) => a.worker - b.worker);
}

/** What the state has to say of a task whose commits were taken in. */
export type TakenChange = (state: FleetState, time: string) => void;

/**
 * The state names the commit of a task before the branch has it, and what became of the task afterwards. Whatever ends in
 * between, a cell or ourselves, the commit is final: it must not be made twice. Undefined where
 * nothing was taken in.
 */
export async function findTaken(
  git: HostGit,
  feature: string,
  id: string,
  task: TaskState | undefined,
): Promise<TakenChange | undefined> {
  const {
    status,
    commit,
    worker_id: worker,
    exit_code: code,
    changed_files: files,
    foreign_files: foreign,
    said,
  } = task ?? {};
  if (status === undefined || !ACTIVE.has(status) || !commit) return undefined;
  if (worker === null || worker === undefined) return undefined;
  // Without walls an agent moves its branch itself; what counts is what was accepted of it.
  const accepted = acceptedRef(feature, worker);
  const home = (await findCommit(git, accepted)) === undefined ? workerBranch(feature, worker) : accepted;
  if (!(await isAncestor(git, commit, home))) return undefined;
  return (state, time) => {
    if (code === 2) return pauseTask(state, id, { commit, reason: said ?? null, worker, time });
    completeTask(state, id, {
      commit,
      files: files ?? [],
      foreign: foreign ?? [],
      durationMs: toDuration(state, id, time),
      worker,
      time,
    });
  };
}

/** The same for all tasks, after a crash. */
export async function findAllTaken(git: HostGit, { feature, tasks }: FleetState): Promise<TakenChange[]> {
  const found = await Promise.all(
    Object.entries(tasks).map(([id, task]) => findTaken(git, feature, id, task)),
  );
  return found.filter((change) => change !== undefined);
}

/** Up to the last sign of whoever led then: what came between is no work. */
function toDuration(state: FleetState, id: string, time: string): number {
  const began = timeOf(state.tasks[id]?.started_at);
  return began === undefined ? 0 : Math.max(0, (timeOf(state.led_until) ?? Date.parse(time)) - began);
}
