import type { WayName } from '../ways/way.ts';
import { latencyRatio, rateOf, type Results } from './results.ts';
import { checkTargets } from './targets.ts';

/** Every figure, with its ratios beside it. */
export function toJsonReport(results: Results): Record<string, unknown> {
  const rate = (other: WayName, entry: Results['throughput'][number]): number | null => {
    const below = rateOf(results, entry.language, { way: other, concurrency: entry.concurrency });
    return below === undefined ? null : entry.perSecond / below;
  };
  return {
    ...results,
    latency: results.latency.map((entry) => ({
      ...entry,
      toBare: latencyRatio(results, entry.language, [entry.way, 'bare']) ?? null,
      toDockerExec: latencyRatio(results, entry.language, [entry.way, 'docker exec']) ?? null,
    })),
    throughput: results.throughput.map((entry) => ({
      ...entry,
      toBare: rate('bare', entry),
      toDockerExec: rate('docker exec', entry),
    })),
    checks: checkTargets(results).map((check) => ({ ...check, value: check.value ?? null })),
  };
}
