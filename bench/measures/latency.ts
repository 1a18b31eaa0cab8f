import { setTimeout as sleep } from 'node:timers/promises';
import type { ForeignLoad } from '../support/foreign-load.ts';
import type { LanguageName } from '../support/hello.ts';
import { progress } from '../support/progress.ts';
import { shuffled, summarize, type Summary } from '../support/statistics.ts';
import type { Way, WayName } from '../ways/way.ts';

export interface Latency {
  readonly language: LanguageName;
  readonly way: WayName;
  readonly ms: Summary;
}

/** For what a way tidies up after its answer. */
const SETTLE_MS = 30;
const PAUSE_MS = 200;
const ROUNDS_BEFORE = 2;

/**
 * One sample of every way and language in each round, in an order that is new each time, so that whatever else the
 * machine does hits all alike. Each starts only when `quiet` says that nothing of the one before is under way.
 */
export async function measureLatency(
  ways: readonly Way[],
  languages: readonly LanguageName[],
  options: { rounds: number; foreign: ForeignLoad; quiet(): Promise<void> },
): Promise<Latency[]> {
  const series = languages.flatMap((language) =>
    ways.filter((way) => way.languages.has(language)).map((way) => ({ language, way, ms: [] as number[] })),
  );
  for (let round = -ROUNDS_BEFORE; round < options.rounds; round++) {
    if (round % 5 === 0) progress(`latency: round ${Math.max(0, round)} of ${options.rounds}`);
    await options.quiet();
    await options.foreign.pause(PAUSE_MS);
    for (const { language, way, ms } of shuffled(series)) {
      await options.quiet();
      await sleep(SETTLE_MS);
      const sample = await way.hello(language);
      // The first ones pay for caches and connections.
      if (round >= 0) ms.push(sample);
    }
  }
  return series.map(({ language, way, ms }) => ({ language, way: way.name, ms: summarize(ms) }));
}
