import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { RateLimit, RateLimitSettings } from './rate-limit.ts';

const ANN = { tenant: 'acme', user: 'ann', project: 'shop' };

function makeLimit(settings: { perMinute?: number; burst?: number; bucketsPerTenant?: number } = {}) {
  const clock = { time: 5000, now: (): number => clock.time };
  const limit = new RateLimit({ ...RateLimitSettings.parse({}), ...settings, clock });
  /** How many of `count` requests are served. */
  const serve = (key: Parameters<RateLimit['take']>[0], count: number): number => {
    let served = 0;
    for (let request = 0; request < count; request++) if (refusal(limit, key) === undefined) served++;
    return served;
  };
  return { clock, limit, serve };
}

function refusal(limit: RateLimit, key: Parameters<RateLimit['take']>[0]): HotcellError | undefined {
  try {
    limit.take(key);
    return undefined;
  } catch (error) {
    if (error instanceof HotcellError) return error;
    throw error;
  }
}

setFlagsFromString('--expose-gc');
const collectGarbage: unknown = runInNewContext('gc');

/** What is still reachable. */
function heapBytes(): number {
  if (typeof collectGarbage === 'function') collectGarbage();
  return process.memoryUsage().heapUsed;
}

describe('one user of one project', () => {
  test('[RS-18] has a burst, then the rate, and is told how long to wait', () => {
    const { clock, limit, serve } = makeLimit({ perMinute: 6, burst: 3 });
    expect(serve(ANN, 5)).toBe(3);
    expect(refusal(limit, ANN)).toMatchObject({ code: 'RATE_LIMITED', status: 429, retryAfterSeconds: 10 });
    clock.time += 4000;
    expect(refusal(limit, ANN)?.retryAfterSeconds).toBe(6);
    clock.time += 5999;
    expect(refusal(limit, ANN)?.retryAfterSeconds).toBe(1);
    clock.time += 1;
    expect(serve(ANN, 2)).toBe(1);
  });

  test('[RS-18] who waits as long as told is served', () => {
    const { clock, limit, serve } = makeLimit({ perMinute: 7, burst: 2 });
    serve(ANN, 100);
    for (let round = 0; round < 1000; round++) {
      clock.time += 1 + ((round * 37) % 900);
      const error = refusal(limit, ANN);
      if (error === undefined) continue;
      clock.time += (error.retryAfterSeconds ?? 0) * 1000;
      expect(refusal(limit, ANN)).toBeUndefined();
    }
  });

  test('[RS-18] gets no more than rate and burst over a long time, however it asks', () => {
    const { clock, serve } = makeLimit({ perMinute: 600, burst: 100 });
    let served = 0;
    for (let step = 0; step < 60_000; step += 7) {
      clock.time += 7;
      served += serve(ANN, 1 + (step % 3));
    }
    expect(served).toBeGreaterThanOrEqual(699);
    expect(served).toBeLessThanOrEqual(701);
  });

  test('[RS-18] refused requests do not make the wait longer', () => {
    const { clock, serve } = makeLimit({ perMinute: 60, burst: 1 });
    expect(serve(ANN, 10_000)).toBe(1);
    clock.time += 1000;
    expect(serve(ANN, 1)).toBe(1);
  });

  test('[RS-18] rests at most to the burst', () => {
    const { clock, serve } = makeLimit({ perMinute: 60, burst: 5 });
    serve(ANN, 5);
    clock.time += 3_600_000;
    expect(serve(ANN, 50)).toBe(5);
  });

  test('[RS-18] 0 is no limit', () => {
    const { serve } = makeLimit({ perMinute: 0 });
    expect(serve(ANN, 100_000)).toBe(100_000);
  });
});

describe('many names', () => {
  test('[RS-18] users, projects and tenants have buckets of their own', () => {
    const { serve } = makeLimit({ burst: 1 });
    const keys = [
      ANN,
      { ...ANN, user: 'bob' },
      { ...ANN, project: 'blog' },
      { ...ANN, tenant: 'globex' },
      { tenant: 'acme', project: 'shop' },
      { tenant: 'acme', user: 'ann' },
      { tenant: 'acme', user: 'ann","shop', project: '' },
      { tenant: 'acme', user: 'null', project: 'shop' },
    ];
    expect(keys.map((key) => serve(key, 2))).toEqual(keys.map(() => 1));
    expect(keys.map((key) => serve(key, 2))).toEqual(keys.map(() => 0));
  });

  test('[RS-18] a flood of new names fills no memory', () => {
    const { clock, limit } = makeLimit({ bucketsPerTenant: 100 });
    const flood = (from: number, to: number): number => {
      for (let name = from; name < to; name++) {
        clock.time += name % 2;
        refusal(limit, { tenant: 'acme', user: `made-up-${name}`, project: 'x'.repeat(name % 500) });
      }
      return heapBytes();
    };
    const before = flood(0, 20_000);
    // A table of them all would have ten MiB more.
    expect(flood(20_000, 120_000) - before).toBeLessThan(2 * 1024 ** 2);
  });

  test('[RS-18] a flood of new names frees nobody from their limit', () => {
    const { serve } = makeLimit({ perMinute: 60, burst: 2, bucketsPerTenant: 100 });
    expect(serve(ANN, 5)).toBe(2);
    for (let name = 0; name < 10_000; name++) serve({ tenant: 'acme', user: `made-up-${name}` }, 1);
    expect(serve(ANN, 5)).toBe(0);
  });

  test('[RS-18] a flood gets no more than a burst for each bucket and one for the rest', () => {
    const { serve } = makeLimit({ perMinute: 60, burst: 2, bucketsPerTenant: 100 });
    let served = 0;
    for (let name = 0; name < 10_000; name++) served += serve({ tenant: 'acme', user: `made-up-${name}` }, 5);
    expect(served).toBe(101 * 2);
  });

  test('[RS-18] a flood takes nothing from other tenants, nor from those who have a bucket', () => {
    const { clock, serve } = makeLimit({ perMinute: 60, burst: 10, bucketsPerTenant: 100 });
    serve(ANN, 9);
    for (let name = 0; name < 5000; name++) serve({ tenant: 'acme', user: `made-up-${name}` }, 20);
    expect(serve({ ...ANN, tenant: 'globex' }, 20)).toBe(10);
    clock.time += 2000;
    expect(serve(ANN, 20)).toBe(3);
  });

  test('[RS-18] after the flood there is room again', () => {
    const { clock, serve } = makeLimit({ perMinute: 600, burst: 2, bucketsPerTenant: 100 });
    for (let name = 0; name < 5000; name++) serve({ tenant: 'acme', user: `made-up-${name}` }, 5);
    expect(serve({ ...ANN, user: 'new' }, 5)).toBe(0);
    clock.time += 1000;
    expect(serve({ ...ANN, user: 'new' }, 5)).toBe(2);
    expect(serve({ ...ANN, user: 'newer' }, 5)).toBe(2);
  });
});
