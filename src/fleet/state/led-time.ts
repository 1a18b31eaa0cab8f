import type { FleetState } from '../fleet-state.ts';
import type { OrchestratorRecord } from './orchestrator-lock.ts';
import type { StateStore } from './state-store.ts';

/**
 * How long somebody has led the feature, in all its runs and without the pauses between them. The state has the sum of
 * the earlier runs, and of the last one its beginning and the last sign of life: nobody has to end well to be counted.
 * Undefined where the times cannot be read.
 */
export function ledMs(
  state: FleetState,
  orchestrator: OrchestratorRecord | undefined,
  now: Date,
): number | undefined {
  const since = timeOf(state.led_since);
  // Another program began it, and did not tell runs apart.
  if (since === undefined) return span(timeOf(state.started_at), timeOf(state.finished_at) ?? now.getTime());
  // Whoever merges or cleans up holds the feature, too, and so does a new one that has not begun yet.
  const isThis = orchestrator !== undefined && since >= (timeOf(orchestrator.started_at) ?? Infinity);
  return (state.led_ms ?? 0) + (span(since, isThis ? now.getTime() : timeOf(state.led_until)) ?? 0);
}

/** Somebody leads from now on. What the one before has led, also one that was killed, goes into the sum. */
export function beginLeading(state: FleetState, time: string): void {
  const lastSign = state.execution_log.at(-1)?.timestamp;
  const before =
    timeOf(state.led_since) === undefined
      ? span(timeOf(state.started_at), timeOf(lastSign))
      : ledMs(state, undefined, new Date(time));
  Object.assign(state, { led_ms: before ?? 0, led_since: time, led_until: time });
}

/** A sign of life. Without it nothing is wrong but the times that are shown. */
export function noteLeading(store: StateStore): void {
  try {
    store.update((state) => (state.led_until = new Date().toISOString()));
  } catch {
    // The next change that matters says why.
  }
}

function span(from: number | undefined, to: number | undefined): number | undefined {
  return from === undefined || to === undefined ? undefined : Math.max(0, to - from);
}

/** Times of others have forms of their own; what cannot be read is not known. */
export function timeOf(text: string | null | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}
