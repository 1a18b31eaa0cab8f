import type { LanguageName } from '../support/hello.ts';
import { latencyRatio, rateOf, type Results } from './results.ts';

export interface Check {
  readonly requirement: string;
  /** Undefined where it was not measured. */
  readonly value: number | undefined;
  readonly verdict: 'ok' | 'MISSED' | 'not measured';
}

/** Most that a warm request over HTTP may take, in starts of the bare interpreter. */
const WARM_TO_BARE: Readonly<Partial<Record<LanguageName, number>>> = {
  python: 0.5,
  ruby: 0.35,
  javascript: 0.35,
  typescript: 0.8,
};
/** Most that a warm request to a server on Docker may take, in docker execs by hand. */
const DOCKER_TO_EXEC = { 'docker shared': 1.25, 'docker fresh': 1 } as const;
/** Least rate of fresh python cells, in rates of docker exec. */
const RATE_TO_DOCKER = 2.5;
const RATE_CONCURRENCY = 4;

export function checkTargets(results: Results): Check[] {
  const checks = Object.entries(WARM_TO_BARE).map(([language, most]) => {
    const value = latencyRatio(results, language as LanguageName, ['hotcell warm', 'bare'])?.median;
    return toCheck(`${language}: warm over HTTP / bare ≤ ${most}`, value, (ratio) => ratio <= most);
  });
  for (const way of ['docker shared', 'docker fresh'] as const) {
    const most = DOCKER_TO_EXEC[way];
    const value = latencyRatio(results, 'python', [way, 'docker exec'])?.median;
    checks.push(toCheck(`python: ${way} over HTTP / docker exec ≤ ${most}`, value, (ratio) => ratio <= most));
  }
  const fresh = rateOf(results, 'python', { way: 'hotcell warm', concurrency: RATE_CONCURRENCY });
  const docker = rateOf(results, 'python', { way: 'docker exec', concurrency: RATE_CONCURRENCY });
  const rate = fresh === undefined || docker === undefined ? undefined : fresh / docker;
  checks.push(
    toCheck(
      `python: fresh cells at concurrency ${RATE_CONCURRENCY} / docker exec ≥ ${RATE_TO_DOCKER}`,
      rate,
      (ratio) => ratio >= RATE_TO_DOCKER,
    ),
  );
  return checks;
}

function toCheck(requirement: string, value: number | undefined, holds: (value: number) => boolean): Check {
  if (value === undefined) return { requirement, value, verdict: 'not measured' };
  return { requirement, value, verdict: holds(value) ? 'ok' : 'MISSED' };
}
