import type { Clock } from '../core/clock.ts';

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.timeOrigin + performance.now(),
  after(delayMs, task) {
    const timer = setTimeout(task, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
  every(intervalMs, task) {
    const timer = setInterval(task, intervalMs);
    timer.unref();
    return () => clearInterval(timer);
  },
};
