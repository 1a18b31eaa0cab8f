import { expect, test } from 'vitest';
import { TaskGraph } from '../task-graph.ts';
import { planRun, whatIf } from './plan-run.ts';

const task = (id: string, level: number, minutes?: number, dependencies: string[] = []) => ({
  id,
  title: id,
  level,
  dependencies,
  ...(minutes === undefined ? {} : { estimate_minutes: minutes }),
});
const GRAPH = TaskGraph.parse({
  feature: 'auth',
  tasks: [
    task('B', 3, 10, ['A2']),
    task('A1', 1, 5),
    task('A2', 1, 20),
    task('A3', 1, 10),
    task('A4', 1, 10),
    task('C', 3, undefined, ['A1']),
  ],
});

test('[FL-04] the plan has levels in order, and the longest task first for whoever has the least', () => {
  const plan = planRun(GRAPH, 2);
  const seen = plan.levels.map(({ level, minutes, shares }) => ({
    level,
    minutes,
    shares: shares.map((share) => `${share.worker}: ${share.tasks.map(({ id }) => id).join(' ')}`),
  }));
  expect(seen).toEqual([
    { level: 1, minutes: 25, shares: ['0: A2 A1', '1: A3 A4'] },
    { level: 3, minutes: 15, shares: ['0: C', '1: B'] },
  ]);
  expect(plan).toMatchObject({ taskCount: 6, taskMinutes: 70, minutes: 40, guessed: 1, workers: 2 });
});

test('[FL-04] the critical path is the longest chain of dependencies', () => {
  expect(planRun(GRAPH, 1).criticalPath).toEqual({ tasks: ['A2', 'B'], minutes: 30 });
});

test('[FL-04] workers without work are left out, and tasks of no minutes are shared out', () => {
  const none = TaskGraph.parse({ feature: 'x', tasks: [task('A', 1, 0), task('B', 1, 0)] });
  expect(planRun(none, 9).levels[0]?.shares.map(({ worker }) => worker)).toEqual([0, 1]);
});

test('[FL-04] what-if goes up to twice the workers, and more than enough bring nothing', () => {
  const rows = whatIf(GRAPH, 3);
  expect(rows.map(({ workers, minutes }) => [workers, minutes])).toEqual([
    [1, 70],
    [2, 40],
    [3, 35],
    [4, 35],
    [5, 35],
    [6, 35],
  ]);
  expect(rows[1]).toMatchObject({ speedup: 1.75, used: 0.875 });
});
