import type { FleetState } from '../fleet-state.ts';
import type { HostGit } from '../git/host-git.ts';
import { isAncestor } from '../git/refs.ts';
import { workerBranch } from '../names.ts';
import { completeTask } from './board.ts';
import { ACTIVE } from './schedule.ts';

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

/**
 * The state names the commit of a task before the branch has it, and says that the task is complete afterwards. Whoever
 * dies in between has done the task all the same: it must not be done twice. Returns what to change in the state.
 */
export async function findFinished(
  git: HostGit,
  state: FleetState,
): Promise<((state: FleetState, time: string) => void)[]> {
  const changes: ((state: FleetState, time: string) => void)[] = [];
  for (const [
    id,
    { status, commit, worker_id: worker, changed_files: files, foreign_files: foreign },
  ] of Object.entries(state.tasks)) {
    if (!ACTIVE.has(status) || !commit || worker === null || worker === undefined) continue;
    const branch = workerBranch(state.feature, worker);
    if (!(await isAncestor(git, commit, branch))) continue;
    changes.push((current, time) =>
      completeTask(current, id, {
        commit,
        files: files ?? [],
        foreign: foreign ?? [],
        durationMs: Date.parse(time) - Date.parse(current.tasks[id]?.started_at ?? time),
        worker,
        time,
      }),
    );
  }
  return changes;
}
