import { setTimeout as sleep } from 'node:timers/promises';
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
const SLICES = 5;
const SETTLE_MS = 200;
/** Longer than a full pool lasts, so that no slice lives on cells that were booted before it. */
const LEAD_MS = 500;

/** Each way is kept busy in slices that take turns; what counts is what ends within a slice. */
export async function measureThroughput(
  ways: readonly Way[],
  languages: readonly LanguageName[],
  options: { seconds: number; quiet(): Promise<void> },
): Promise<Throughput[]> {
  const found: Throughput[] = [];
  for (const language of languages) {
    const able = ways.filter((way) => way.languages.has(language));
    for (const concurrency of CONCURRENCIES) {
      progress(`throughput: ${language}, ${concurrency} at a time`);
      const series = able.map((way) => ({ way, slices: [] as number[] }));
      for (let slice = 0; slice < SLICES; slice++) {
        for (const { way, slices } of shuffled(series)) {
          await options.quiet();
          await sleep(SETTLE_MS);
          const run = (): Promise<unknown> => way.hello(language);
          slices.push(await rateUnderLoad(run, concurrency, (options.seconds * 1000) / SLICES));
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
  let ended = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      await run();
      const now = performance.now();
      if (now >= from && now < until) ended++;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, client));
  return (ended * 1000) / ms;
}
