import { setTimeout as sleep } from 'node:timers/promises';
import { PERFORM } from './acts/acts.ts';
import { HARM } from './faults/faults.ts';
import { LANES, type Act, type Fault, type Round } from './plan.ts';
import { isExcused, wordsOf } from './troubles.ts';
import type { World } from './world.ts';

export interface Wrong {
  readonly round: number;
  /** The act, the fault or the check. */
  readonly where: string;
  readonly words: string;
  /** The last words of the server when it was noticed. */
  readonly log: string;
}

export interface RoundEnd {
  readonly wrong: readonly Wrong[];
  /** Acts that failed as a fault allows. */
  readonly excused: number;
}

const LOG_KEPT = 3000;
/** Longer than anything takes on a busy machine: whoever is not answered by then is never answered. */
const ACT_MS = 120_000;
const FAULT_MS = 180_000;

export function toWrong(world: World, round: number, where: string, error: unknown): Wrong {
  return { round, where, words: wordsOf(error), log: world.server.output.slice(-LOG_KEPT) };
}

/** Performs the acts of a round, lane by lane, with its faults amid them. */
export async function performRound(world: World, round: Round): Promise<RoundEnd> {
  const wrong: Wrong[] = [];
  const progress = new Progress();
  let excused = 0;
  const perform = async (act: Act): Promise<void> => {
    await world.up();
    const begun = performance.now();
    try {
      await within(ACT_MS, PERFORM[act.kind](world, act));
    } catch (error) {
      if (isExcused(error, world.troubles.since(begun))) excused++;
      else
        wrong.push(toWrong(world, round.number, `act ${act.number} ${act.kind} in lane ${act.lane}`, error));
    }
    progress.step();
  };
  const harm = async (fault: Fault): Promise<void> => {
    await progress.until(fault.after);
    await sleep(fault.delayMs);
    const end = world.troubles.begin(fault.kind);
    try {
      await within(FAULT_MS, HARM[fault.kind](world, fault));
    } catch (error) {
      wrong.push(toWrong(world, round.number, `fault ${fault.kind}`, error));
    }
    // What it did to cells is met by later acts, too.
    if (!LINGERS.has(fault.kind)) end();
  };
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    for (const act of round.acts.filter((candidate) => candidate.lane === lane)) await perform(act);
  });
  const faults = (async () => {
    for (const fault of round.faults) await harm(fault);
  })();
  await Promise.all([...lanes, faults]);
  return { wrong, excused };
}

const LINGERS: ReadonlySet<string> = new Set([
  'kill-init',
  'kill-runtime',
  'kill-keeper',
  'kill-session',
  'kill-container',
  'kill-engine',
  'freeze-engine',
  'full-disk',
]);

/** Fails if it takes longer. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  const late = new AbortController();
  const limit = sleep(ms, undefined, { signal: late.signal }).then(() => {
    throw new Error(`it hangs: no end in ${ms} ms`);
  });
  limit.catch(() => {});
  await Promise.race([work, limit]).finally(() => late.abort());
}

/** How many acts of a round are over. */
class Progress {
  #done = 0;
  readonly #waiting: { readonly count: number; readonly resolve: () => void }[] = [];

  step(): void {
    this.#done++;
    for (const { count, resolve } of this.#waiting) if (count <= this.#done) resolve();
  }

  until(count: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ count, resolve });
    if (count <= this.#done) resolve();
    return promise;
  }
}
