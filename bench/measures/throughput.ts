import type { ForeignLoad } from '../support/foreign-load.ts';
import type { LanguageName } from '../support/hello.ts';
import { progress } from '../support/progress.ts';
import { median, shuffled } from '../support/statistics.ts';
import type { Way, WayName } from '../ways/way.ts';

export interface Throughput {
  readonly language: LanguageName;
  readonly way: WayName;
  readonly concurrency: number;
  /** Median of the slices. */
  readonly perSecond: number;
  readonly slices: readonly number[];
}

export const CONCURRENCIES = [1, 4, 16] as const;
const MOST_SLICES = 5;
const LEAST_SLICE_MS = 1000;
const PAUSE_MS = 200;
/** Longer than a full pool lasts, so that no slice lives on cells that were booted before it. */
const LEAD_MS = 500;

/** Each way is kept busy in slices that take turns; a run that lies partly in a slice counts for that part. */
export async function measureThroughput(
  ways: readonly Way[],
  languages: readonly LanguageName[],
  options: { seconds: number; foreign: ForeignLoad; quiet(): Promise<void> },
): Promise<Throughput[]> {
  const found: Throughput[] = [];
  const count = Math.max(1, Math.min(MOST_SLICES, Math.floor((options.seconds * 1000) / LEAST_SLICE_MS)));
  const ms = (options.seconds * 1000) / count;
  for (const language of languages) {
    const able = ways.filter((way) => way.languages.has(language));
    for (const concurrency of CONCURRENCIES) {
      progress(`throughput: ${language}, ${concurrency} at a time`);
      const series = able.map((way) => ({ way, slices: [] as number[] }));
      for (let slice = 0; slice < count; slice++) {
        for (const { way, slices } of shuffled(series)) {
          await options.quiet();
          await options.foreign.pause(PAUSE_MS);
          const run = (): Promise<unknown> => way.hello(language);
          slices.push(await rateUnderLoad(run, concurrency, ms));
        }
      }
      for (const { way, slices } of series) {
        found.push({ language, way: way.name, concurrency, perSecond: median(slices), slices });
      }
    }
  }
  return found;
}

async function rateUnderLoad(run: () => Promise<unknown>, concurrency: number, ms: number): Promise<number> {
  const from = performance.now() + LEAD_MS;
  const until = from + ms;
  let runs = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const startedAt = performance.now();
      await run();
      const endedAt = performance.now();
      const within = Math.min(endedAt, until) - Math.max(startedAt, from);
      runs += Math.max(0, within) / (endedAt - startedAt);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return (runs * 1000) / ms;
}
