import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { parseJson } from '../../lib/parse-json.ts';
import { AgentFigures } from '../fleet-state.ts';
import type { FleetPaths } from '../names.ts';
import { addFigures, NO_FIGURES, type AgentFigures as Figures } from '../worker/agent-watch.ts';
import { withFileLock } from './file-lock.ts';
import { StateStore } from './state-store.ts';

/** What it has cost to plan and to design a feature. It stands beside the state, since there is none yet by then. */
export function readPlanning(paths: Pick<FleetPaths, 'planning'>): Figures | undefined {
  try {
    return AgentFigures.safeParse(parseJson(readFileSync(paths.planning, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** One more answer of the agent. A state that is there has a copy, which the next start makes anew. */
export function notePlanning(paths: FleetPaths, figures: Figures): void {
  mkdirSync(paths.stateFolder, { recursive: true });
  const planning = withFileLock(paths.stateLock, () => {
    const sum = addFigures(readPlanning(paths) ?? NO_FIGURES, figures);
    const draft = `${paths.planning}.tmp`;
    writeFileSync(draft, `${JSON.stringify(sum)}\n`, { mode: 0o644 });
    renameSync(draft, paths.planning);
    return sum;
  });
  const store = new StateStore(paths);
  if (store.read() !== undefined) store.update((state) => void (state.planning = { ...planning }));
}
