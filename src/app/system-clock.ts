import type { Clock } from '../core/clock.ts';

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  every(intervalMs, task) {
    const timer = setInterval(task, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};
