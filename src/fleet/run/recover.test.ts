import { expect, test } from 'vitest';
import { PreparedFleet } from '../../../test/support/prepared-fleet.ts';
import { HostGit } from '../git/host-git.ts';
import { workerBranch } from '../names.ts';
import { findAllTaken } from './recover.ts';

test('[FL-15, FL-06] what is committed is done, and took no longer than somebody led', async () => {
  await using repository = new PreparedFleet();
  const git = await HostGit.open(repository.root, process.env);
  const commit = repository.branch(workerBranch('shop', 0), 'HEAD', 'a');
  const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
  const task = { status: 'verifying', level: 1, worker_id: 0, started_at: at(1), commit };
  const store = repository.state({
    led_since: at(0),
    led_until: at(3),
    tasks: { A: task, B: { ...task, worker_id: 1 } },
  });
  const changes = await findAllTaken(git, store.require());
  store.update((state) => changes.forEach((change) => change(state, at(50))));
  expect(store.read()?.tasks).toMatchObject({
    A: { status: 'complete', duration_ms: 120_000, completed_at: at(50) },
    B: { status: 'verifying' },
  });
});

test('[FL-15, FL-03] of a task that goes on its commit is kept, with what its agent said', async () => {
  await using repository = new PreparedFleet();
  const git = await HostGit.open(repository.root, process.env);
  const commit = repository.branch(workerBranch('shop', 0), 'HEAD', 'a');
  const A = {
    status: 'in_progress',
    level: 1,
    worker_id: 0,
    commit,
    exit_code: 2,
    said: 'the other half',
  };
  const store = repository.state({ tasks: { A } });
  const changes = await findAllTaken(git, store.require());
  store.update((state) => changes.forEach((change) => change(state, '2026-01-01T00:00:00Z')));
  expect(store.read()?.tasks).toMatchObject({
    A: { status: 'paused', said: 'the other half', wip: { commit, worker_id: 0 } },
  });
});
