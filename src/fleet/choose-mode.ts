import { HotcellError } from '../core/errors.ts';
import type { FleetMode } from './fleet-site.ts';

/** Whether cells can be made in one way. */
export type Candidate =
  | { readonly ok: true; readonly runtime: string }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

export type CellDriver = 'docker' | 'oci';

export interface ModeWish {
  readonly mode: FleetMode | 'auto';
  readonly driver: CellDriver | 'auto';
  readonly look: (driver: CellDriver) => Promise<Candidate>;
}

export interface ChosenMode {
  readonly mode: FleetMode;
  readonly driver: CellDriver | 'subprocess';
  /** For people. */
  readonly reason: string;
}

/**
 * How workers run. Mode auto takes cells where they can be had, and plain processes otherwise; whoever asks for cells gets
 * cells or an error, never less.
 */
export async function chooseMode({ mode, driver, look }: ModeWish): Promise<ChosenMode> {
  if (mode === 'subprocess') return { mode, driver: 'subprocess', reason: 'as asked for' };
  const problems: { readonly problem: string; readonly remedy: string }[] = [];
  for (const name of driver === 'auto' ? (['docker', 'oci'] as const) : [driver]) {
    const candidate = await look(name);
    if (candidate.ok) {
      const why = problems.map(({ problem }) => problem).join('; ');
      const reason = mode === 'auto' ? `auto: ${name} and what the agent needs are there` : 'as asked for';
      return { mode: 'container', driver: name, reason: why === '' ? reason : `${reason} (${why})` };
    }
    problems.push(candidate);
  }
  const all = problems.map(({ problem }) => problem).join('; ');
  if (mode === 'auto')
    return { mode: 'subprocess', driver: 'subprocess', reason: `auto: no cells here: ${all}` };
  throw new HotcellError('DRIVER_UNAVAILABLE', `mode container is not possible here: ${all}`, {
    hint: problems.map(({ remedy }) => remedy).join('\n'),
  });
}
