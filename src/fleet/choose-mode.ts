import { HotcellError } from '../core/errors.ts';
import { PLAIN_MODE, type FleetMode, type FleetSite } from './fleet-site.ts';

/** Whether cells can be made in one way. */
export type Candidate =
  | { readonly ok: true; readonly runtime: string }
  | { readonly ok: false; readonly problem: string; readonly remedy: string };

export interface ModeWish<Name extends string> {
  readonly mode: FleetMode | 'auto';
  readonly driver: Name | 'auto';
  /** Those that make cells for workers, the best first, and the one that makes plain processes. */
  readonly drivers: { readonly walled: readonly Name[]; readonly plain: Name };
  readonly look: (driver: Name) => Promise<Candidate>;
}

export interface ChosenMode<Name extends string> extends Pick<FleetSite, 'mode' | 'reason'> {
  readonly driver: Name;
}

/**
 * How workers run. Mode auto takes cells where they can be had, and plain processes otherwise; whoever asks for cells gets
 * cells or an error, never less.
 */
export async function chooseMode<Name extends string>({
  mode,
  driver,
  drivers,
  look,
}: ModeWish<Name>): Promise<ChosenMode<Name>> {
  const plainly = (reason: string): ChosenMode<Name> => ({ mode: PLAIN_MODE, driver: drivers.plain, reason });
  if (mode === PLAIN_MODE) return plainly('as asked for');
  const problems: { readonly problem: string; readonly remedy: string }[] = [];
  for (const name of driver === 'auto' ? drivers.walled : [driver]) {
    const candidate = await look(name);
    if (candidate.ok) {
      const why = problems.map(({ problem }) => problem).join('; ');
      const reason = mode === 'auto' ? `auto: ${name} and what the agent needs are there` : 'as asked for';
      return { mode: 'container', driver: name, reason: why === '' ? reason : `${reason} (${why})` };
    }
    problems.push(candidate);
  }
  const all = problems.map(({ problem }) => problem).join('; ');
  if (mode === 'auto') return plainly(`auto: no cells here: ${all}`);
  throw new HotcellError('DRIVER_UNAVAILABLE', `mode container is not possible here: ${all}`, {
    hint: problems.map(({ remedy }) => remedy).join('\n'),
  });
}
