import { expect, test } from 'vitest';
import { FleetState } from '../fleet-state.ts';
import { beginLeading, ledMs } from './led-time.ts';

const MINUTE = 60_000;
const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const stateWith = (change: object): FleetState =>
  FleetState.parse({ feature: 'shop', started_at: at(0), ...change });
const led = (state: FleetState, minute: number, began?: number): number | undefined =>
  ledMs(
    state,
    began === undefined ? undefined : { pid: 4711, started_at: at(began) },
    new Date(Date.UTC(2026, 0, 1, 0, minute)),
  );

test('[FL-06] what lies between two runs is not counted, however the first one ended', () => {
  const state = stateWith({ led_ms: 0, led_since: at(0), led_until: at(4) });
  expect(led(state, 6, 0)).toBe(6 * MINUTE);
  // Killed; then nobody for half an hour.
  expect(led(state, 30)).toBe(4 * MINUTE);
  beginLeading(state, at(30));
  expect(led(state, 30, 30)).toBe(4 * MINUTE);
  expect(led(state, 33, 30)).toBe(7 * MINUTE);
  state.led_until = at(35);
  expect(led(state, 59)).toBe(9 * MINUTE);
  beginLeading(state, at(59));
  expect(led(state, 59, 59)).toBe(9 * MINUTE);
});

test('[FL-06] who holds the feature for something else, or has not begun yet, leads nothing', () => {
  const state = stateWith({ led_ms: MINUTE, led_since: at(1), led_until: at(3) });
  expect(led(state, 50, 49)).toBe(3 * MINUTE);
});

test('[FL-06] a state that knows no runs goes from its beginning to its end, or to its last event', () => {
  expect(led(stateWith({ finished_at: at(7) }), 20)).toBe(7 * MINUTE);
  expect(led(stateWith({}), 20)).toBe(20 * MINUTE);
  expect(led(stateWith({ started_at: 'yesterday' }), 20)).toBeUndefined();
  const state = stateWith({ execution_log: [{ timestamp: at(5), event: 'task_claimed' }] });
  beginLeading(state, at(40));
  expect(led(state, 41, 40)).toBe(6 * MINUTE);
});

test('[FL-06] a clock that was set back takes nothing away', () => {
  const state = stateWith({ led_ms: MINUTE, led_since: at(10), led_until: at(12) });
  expect(led(state, 5, 10)).toBe(MINUTE);
  beginLeading(state, at(2));
  expect(state.led_ms).toBe(3 * MINUTE);
});
