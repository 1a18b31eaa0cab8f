import type { CleanUpPlan } from '../../fleet/clean-up.ts';
import type { Terminal } from '../terminal.ts';
import { oneLine } from '../../lib/one-line.ts';

const LONGEST = 1000;

/** What goes and what stays, feature by feature. */
export function renderCleanUp(
  plans: readonly CleanUpPlan[],
  cells: readonly string[],
  paint: Terminal['paint'],
): string[] {
  const parts = plans.map((plan) => [
    paint.bold(plan.feature),
    ...plan.worktrees.map((path) => `  - worktree ${oneLine(path, LONGEST)}`),
    ...plan.refs.map(
      ({ ref, commit }) => `  - branch ${oneLine(nameOf(ref), LONGEST)} (at ${commit.slice(0, 12)})`,
    ),
    ...plan.paths.map((path) => `  - ${oneLine(path, LONGEST)}`),
    ...plan.kept.map(
      ({ ref, commit, why }) =>
        `  ${paint.yellow('!')} branch ${oneLine(nameOf(ref), LONGEST)} stays (at ${commit.slice(0, 12)}): ${oneLine(why, LONGEST)}`,
    ),
  ]);
  return [...parts.flat(), ...cells.map((cell) => `  - cell ${oneLine(cell, LONGEST)}`)];
}

function nameOf(ref: string): string {
  return ref.replace(/^refs\/heads\//, '');
}
