/**
 * A process that uses the state of a fleet, for tests that need several of them, or one to kill.
 * Arguments: root, feature, then what to do: `count <times> <name>` or `hold <mode>`; mode `deaf` obeys no SIGTERM.
 */
import { fleetPaths } from '../../src/fleet/names.ts';
import { takeOrchestrator } from '../../src/fleet/state/orchestrator-lock.ts';
import { appendEvent, StateStore } from '../../src/fleet/state/state-store.ts';

const [root = '', feature = '', work, first = '', name = ''] = process.argv.slice(2);
const paths = fleetPaths(root, feature);
if (work === 'count') {
  const store = new StateStore(paths);
  for (let turn = 0; turn < Number(first); turn++) {
    store.update((state) => {
      state['count'] = Number(state['count'] ?? 0) + 1;
      state.tasks[`${name}-${turn}`] = { status: 'complete', retry_count: 0 };
      appendEvent(state, 'counted', { name, turn });
    });
    if (turn === 0) process.stdout.write('counting\n');
  }
} else {
  const hold = takeOrchestrator(paths, { mode: first });
  process.on('SIGTERM', () => {
    if (first === 'deaf') return;
    hold[Symbol.dispose]();
    process.exit(0);
  });
  setInterval(() => {}, 1000);
  process.stdout.write(`${JSON.stringify(hold.record)}\n`);
}
