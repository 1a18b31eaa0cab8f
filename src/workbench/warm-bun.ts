import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../core/clock.ts';
import type { BenchCell } from './bench-cell.ts';
import { WaitingBun, type StartedExec } from './waiting-bun.ts';
import { toWaitingRequest, toWarmKey, type WarmPlan } from './warm-plan.ts';

export interface WarmBunOptions {
  /** Zero: never. */
  readonly warmMs: number;
  readonly clock: Clock;
}

interface Kept {
  readonly bench: BenchCell;
  readonly plan: WarmPlan;
  readonly key: string;
  readonly bun: WaitingBun;
  readonly since: number;
}

/** A package that takes longer to load is loaded by the run itself. */
const LONGEST_WAIT_MS = 2000;
const MOST_REFUSED = 100;

/**
 * The Bun that a workbench has waiting for its next run. It is only ever a gain: a run that it does not fit starts its own.
 * SECURITY: it never lives beside a run that it is not for, because it may have variables that were taken back since.
 */
export class WarmBun {
  readonly #options: WarmBunOptions;
  #kept: Kept | undefined;
  /** Started after the run that is under way. */
  #wanted: { readonly bench: BenchCell; readonly plan: WarmPlan } | undefined;
  /** What cannot be loaded without being noticed: it prints, fails or does not end. */
  readonly #refused = new Set<string>();
  #isClosed = false;

  constructor(options: WarmBunOptions) {
    this.#options = options;
  }

  /**
   * The one that waits for just this, told to go on; undefined where there is none, and then nothing waits any more. `lay`
   * puts the code where it is to be found: not while Bun looks for it, which would find a file that is gone.
   */
  async take(
    bench: BenchCell,
    given: WarmPlan,
    { signal, lay }: { readonly signal: AbortSignal; readonly lay: () => void },
  ): Promise<StartedExec | undefined> {
    const plan = this.#withoutRefused(given);
    const kept = this.#kept;
    this.#kept = undefined;
    this.#wanted = { bench, plan };
    const fits = kept?.bench === bench && kept.key === toWarmKey(plan);
    const isWaiting = fits && (await isReady(kept.bun, signal));
    lay();
    if (kept === undefined) return undefined;
    if (fits) {
      const started = isWaiting ? await kept.bun.go() : undefined;
      if (started !== undefined) return started;
      if (!signal.aborted) this.#learn(kept);
      this.#wanted = { bench, plan: this.#withoutRefused(given) };
    }
    await kept.bun.end();
    return undefined;
  }

  #learn({ plan, bench }: Kept): void {
    if (plan.packages.length === 0 || bench.isLost) return;
    if (this.#refused.size >= MOST_REFUSED) this.#refused.clear();
    this.#refused.add(toSet(plan));
  }

  #withoutRefused(plan: WarmPlan): WarmPlan {
    return this.#refused.has(toSet(plan)) ? { ...plan, packages: [] } : plan;
  }

  /** After a run: starts one for the next that is like it. */
  refill(): void {
    const wanted = this.#wanted;
    this.#wanted = undefined;
    const { warmMs, clock } = this.#options;
    if (wanted === undefined || this.#isClosed || warmMs === 0 || wanted.bench.isLost) return;
    const { bench, plan } = wanted;
    const request = toWaitingRequest(plan.request);
    if (request === undefined || this.#kept !== undefined) return;
    const bun = new WaitingBun(bench.cell.exec(request), plan.packages);
    this.#kept = { bench, plan, key: toWarmKey(plan), bun, since: clock.now() };
  }

  /** What it has seen may not be so any more. Resolves when it is gone. */
  async discard(): Promise<undefined> {
    const kept = this.#kept;
    this.#kept = undefined;
    await kept?.bun.end();
    return undefined;
  }

  /** Ends one that nobody has wanted for long. */
  sweep(): void {
    const { warmMs, clock } = this.#options;
    if (this.#kept !== undefined && clock.now() - this.#kept.since >= warmMs) void this.discard();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.discard();
  }
}

function toSet({ modules, packages }: WarmPlan): string {
  return JSON.stringify([modules, packages]);
}

async function isReady(bun: WaitingBun, signal: AbortSignal): Promise<boolean> {
  const bounded = new AbortController();
  const given = AbortSignal.any([signal, bounded.signal]);
  try {
    return await Promise.race([bun.ready, tooLate(given)]);
  } finally {
    bounded.abort();
  }
}

async function tooLate(signal: AbortSignal): Promise<false> {
  await sleep(LONGEST_WAIT_MS, undefined, { signal }).catch(() => {});
  return false;
}
