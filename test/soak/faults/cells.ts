import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { instancesOf } from '../../support/footprint.ts';
import { waitFor } from '../../support/leftovers.ts';
import { findCells, type CellProcesses } from '../../support/oci-cells.ts';
import { choose } from '../acts/act.ts';
import { descendantsOf, signalAll } from '../../support/processes.ts';
import type { World } from '../world.ts';
import type { Harm } from './fault.ts';

const NOTICED_MS = 60_000;
const SHORTEST_FREEZE_MS = 100;
const MORE_FREEZE_MS = 900;

/** Cells of runs and workbenches, or those of sessions. */
function cellsOf({ stateDirectory }: World, which: 'short' | 'lasting'): CellProcesses[] {
  return instancesOf(stateDirectory)
    .filter((id) => id.startsWith('lasting-') === (which === 'lasting'))
    .flatMap((id) => findCells(stateDirectory, id));
}

async function killOne(
  cells: readonly CellProcesses[],
  which: 'init' | 'runtime',
  dice: number,
): Promise<void> {
  // There is none while the server boots.
  if (cells.length === 0) return;
  const cell = choose(cells, dice);
  signalAll([cell[which]], 'SIGKILL');
  // With the first process of a cell the kernel ends all others, and the server has to notice.
  if (which === 'init') await waitFor('the server has noticed', () => !existsSync(cell.folder), NOTICED_MS);
}

export const killInit: Harm = async (world, { dice }) => {
  await world.up();
  await killOne(cellsOf(world, 'short'), 'init', dice);
};

export const killRuntime: Harm = async (world, { dice }) => {
  await world.up();
  await killOne(cellsOf(world, 'short'), 'runtime', dice);
};

/** As an operator or the kernel might: the session is over, its files are not. */
export const killSession: Harm = async (world, { dice }) => {
  await world.up();
  const cells = cellsOf(world, 'lasting');
  world.ledger.allowLosses(Math.min(1, cells.length));
  await killOne(cells, 'init', dice);
};

/** The helpers that start runtimes. */
export const killKeeper: Harm = async (world) => {
  const { pid = 0 } = (await world.up()).process;
  const keepers = descendantsOf(pid).filter(({ words }) => words.includes('keeper.bash'));
  signalAll(
    keepers.map((keeper) => keeper.pid),
    'SIGKILL',
  );
};

/** The programs of one cell stand still for a while, and whoever waits for them waits. */
export const freezeCell: Harm = async (world, { dice }) => {
  await world.up();
  const cells = cellsOf(world, 'short');
  if (cells.length === 0) return;
  const { init } = choose(cells, dice);
  const pids = [init, ...descendantsOf(init).map(({ pid }) => pid)];
  signalAll(pids, 'SIGSTOP');
  try {
    // The length of the fault, not a wait for anything.
    await sleep(SHORTEST_FREEZE_MS + dice * MORE_FREEZE_MS);
  } finally {
    signalAll(pids, 'SIGCONT');
  }
};
