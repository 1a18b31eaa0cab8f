import type { CellCost } from '../measures/cells.ts';
import type { Latency } from '../measures/latency.ts';
import type { StartTimes } from '../measures/start.ts';
import type { Throughput } from '../measures/throughput.ts';
import type { Machine, Versions } from '../support/machine.ts';
import type { LanguageName } from '../support/hello.ts';
import type { WayName } from '../ways/way.ts';

/** Everything that a run has found. */
export interface Results {
  readonly machine: Machine;
  readonly versions: Versions;
  readonly options: { readonly rounds: number; readonly seconds: number };
  /** Cores that others kept busy, on average over our pauses. */
  readonly foreignCores: number;
  readonly latency: readonly Latency[];
  readonly throughput: readonly Throughput[];
  readonly cells: readonly CellCost[];
  readonly start: StartTimes;
  /** Requests of the warm way that found no booted cell. */
  readonly notWarm: number;
}

/** How many times as long as another way a way takes, by the medians and by the p95; undefined if one was not measured. */
export function latencyRatio(
  { latency }: Pick<Results, 'latency'>,
  language: LanguageName,
  [way, other]: readonly [WayName, WayName],
): { median: number; p95: number } | undefined {
  const find = (name: WayName): Latency | undefined =>
    latency.find((entry) => entry.language === language && entry.way === name);
  const [above, below] = [find(way), find(other)];
  if (above === undefined || below === undefined) return undefined;
  return { median: above.ms.median / below.ms.median, p95: above.ms.p95 / below.ms.p95 };
}

export function rateOf(
  { throughput }: Pick<Results, 'throughput'>,
  language: LanguageName,
  at: { way: WayName; concurrency: number },
): number | undefined {
  return throughput.find(
    (entry) => entry.language === language && entry.way === at.way && entry.concurrency === at.concurrency,
  )?.perSecond;
}
