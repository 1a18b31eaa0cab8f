import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { toSessionMark } from '../../src/policy/audit-entry.ts';
import { cellsOf, engineThingsOf, instancesOf } from '../support/footprint.ts';
import { findTraces, waitFor } from '../support/leftovers.ts';
import { readMetrics } from '../support/live-server.ts';
import { loopsBelow } from '../support/session-remains.ts';
import { findMarked } from './markers.ts';
import { POOL_SIZE, type World } from './world.ts';

const RESTS_WITHIN_MS = 60_000;
const GONE_WITHIN_MS = 20_000;
/** Of a round in which something else is wrong already. */
const SHORTER_MS = 2000;

/** Waits until nothing runs and every pool is full. */
export async function rest(world: World): Promise<void> {
  const isQuiet = async (): Promise<boolean> => {
    const running = (await readMetrics(world.server, 'hotcell_runs_running')).get('') ?? 1;
    const ready = [...(await readMetrics(world.server, 'hotcell_cells_ready')).values()];
    return running === 0 && ready.length > 0 && ready.every((cells) => cells >= POOL_SIZE);
  };
  await waitFor('the server comes to rest', isQuiet, RESTS_WITHIN_MS);
}

/** What is there and belongs to nobody, in words; empty when all is well. The server is at rest. */
export async function findOrphans(world: World, isSpoilt: boolean): Promise<string[]> {
  let found: string[] = [];
  const isClean = async (): Promise<boolean> => (found = await lookForOrphans(world)).length === 0;
  // What is still on its way out gets the time to go.
  await waitFor('nothing is orphaned', isClean, isSpoilt ? SHORTER_MS : GONE_WITHIN_MS).catch(() => {});
  return found;
}

async function lookForOrphans(world: World): Promise<string[]> {
  const ready = [...(await readMetrics(world.server, 'hotcell_cells_ready')).values()];
  return [
    ...markedOf(world),
    ...world.survivors(),
    ...tracesOfFormer(world),
    ...(await thingsOfFormer(world)),
    ...sessionThings(world),
    ...(await surplusCells(world, ready)),
  ];
}

/** Programs of acts that are over. */
function markedOf({ ledger }: World): string[] {
  const expected = new Set(ledger.entries().flatMap(({ counting }) => [...counting.values()]));
  return [...findMarked()].filter((marker) => !expected.has(marker)).map((marker) => `program ${marker}`);
}

/** Of servers that have ended: folders, cgroups, mounts. */
function tracesOfFormer({ stateDirectory, formerInstances }: World): string[] {
  const ids = [...formerInstances];
  const { cgroups, mounts, folders } = findTraces(stateDirectory, ids);
  const isTheirs = (text: string): boolean => ids.some((id) => text.includes(id));
  return [...cgroups, ...mounts, ...folders].filter(isTheirs);
}

async function thingsOfFormer({ way, formerPids }: World): Promise<string[]> {
  if (way.driver !== 'docker') return [];
  const things = (await Promise.all([...formerPids].map((pid) => engineThingsOf(pid)))).flat();
  return things
    .filter(({ labels }) => labels['hotcell.keeper'] === undefined)
    .map(({ kind, id, name }) => `${kind} ${name} ${id} of a former server`);
}

/** Every session has one of each, and nobody else has any. */
function sessionThings({ ledger, stateDirectory, dataDirectory, way }: World): string[] {
  const expected = ledger.sessions.size;
  const volumes = join(dataDirectory, 'volumes/');
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.split(' ')[4]?.startsWith(volumes));
  const counts: Record<string, number> = { mounts: mounts.length, loops: loopsBelow(dataDirectory).length };
  if (way.driver === 'oci') {
    counts['cells'] = globSync(`${stateDirectory}/lasting-*/cells/*`).length;
    const keeper = instancesOf(stateDirectory).find((id) => id.startsWith('lasting-')) ?? 'none';
    // One hierarchy is enough to tell.
    const [folder] = globSync(`/sys/fs/cgroup/{,memory/,pids/}hotcell/${keeper}`);
    counts['cgroups'] =
      folder === undefined
        ? 0
        : readdirSync(folder, { withFileTypes: true }).filter((item) => item.isDirectory()).length;
  }
  const outputs = join(dataDirectory, 'output');
  const marks = new Set([...ledger.sessions.keys()].map(toSessionMark));
  const left = existsSync(outputs) ? readdirSync(outputs).filter((name) => !marks.has(name)) : [];
  return [
    ...Object.entries(counts)
      .filter(([, count]) => count !== expected)
      .map(([kind, count]) => `${count} ${kind} of ${expected} sessions`),
    ...left.map((name) => `output of ${name}`),
  ];
}

/** Waiting cells are counted by the server; workbenches have one cell for each language at most. */
async function surplusCells({ server }: World, ready: readonly number[]): Promise<string[]> {
  const isShared = server.way?.singleUse === false;
  const expected = ready.map((waiting) => (isShared ? Math.min(1, waiting) : waiting));
  const cells = (await cellsOf(server)).filter(({ owner }) => !owner.startsWith('lasting-'));
  const most = expected.reduce((sum, count) => sum + count, 0) + WORKBENCH_CELLS;
  return cells.length <= most ? [] : [`${cells.length} cells, though ${most} are the most that can be`];
}

const WORKBENCH_CELLS = 2;
