import { hash } from 'node:crypto';
import * as z from 'zod';
import type { Clock } from '../core/clock.ts';
import { HotcellError } from '../core/errors.ts';
import { whole } from '../core/setting-values.ts';

const MINUTE_MS = 60_000;
/** How often a full table may be searched for buckets that nobody needs: a search costs time for each of them. */
const SEARCH_PAUSE_MS = 250;

export const RateLimitSettings = z.strictObject({
  perMinute: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(600)
    .describe('requests per minute that each user may send for each project; 0: no limit'),
  burst: whole(100, { min: 1, max: 1_000_000 }).describe('requests that may come at once after a rest'),
});
export type RateLimitSettings = z.infer<typeof RateLimitSettings>;

/** Whose request it is. The tenant comes from a key, user and project are whatever the caller says. */
export interface RateKey {
  readonly tenant: string;
  readonly user?: string | null | undefined;
  readonly project?: string | null | undefined;
}

interface RateLimitParts extends RateLimitSettings {
  readonly clock: Pick<Clock, 'now'>;
  /** Buckets of one tenant at once. */
  readonly bucketsPerTenant?: number;
}

/** The time at which each bucket of a tenant is full again. A full bucket is the same as none. */
interface TenantBuckets {
  readonly fullAt: Map<string, number>;
  /** For the names that found no room. */
  overflowFullAt: number;
  searchedAt: number;
}

/**
 * A bucket of tokens for each user and project of a tenant.
 *
 * SECURITY: user and project can be made up, so the table is bounded, per tenant. Only full buckets are forgotten, which
 * nobody notices; when there is none, names without a bucket share one until there is. So a flood of new names fills no
 * memory, frees nobody from their own limit, and takes nothing from other tenants or from those who have a bucket.
 */
export class RateLimit {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #isOff: boolean;
  readonly #intervalMs: number;
  readonly #capacityMs: number;
  readonly #bucketsPerTenant: number;
  readonly #tenants = new Map<string, TenantBuckets>();

  constructor({ perMinute, burst, clock, bucketsPerTenant = 10_000 }: RateLimitParts) {
    this.#clock = clock;
    this.#isOff = perMinute === 0;
    this.#intervalMs = MINUTE_MS / perMinute;
    this.#capacityMs = this.#intervalMs * burst;
    this.#bucketsPerTenant = bucketsPerTenant;
  }

  /** Throws when the bucket is empty; a refused request costs nothing. */
  take(key: RateKey): void {
    if (this.#isOff) return;
    const now = this.#clock.now();
    const buckets = this.#bucketsOf(key.tenant);
    const name = hash('sha256', JSON.stringify([key.user ?? null, key.project ?? null]), 'base64');
    const known = buckets.fullAt.get(name);
    if (known === undefined && !this.#hasRoom(buckets, now)) {
      buckets.overflowFullAt = this.#afterOne(buckets.overflowFullAt, now);
    } else buckets.fullAt.set(name, this.#afterOne(known ?? now, now));
  }

  /** When the bucket is full again after one more token is taken from it. */
  #afterOne(fullAt: number, now: number): number {
    const missingMs = Math.max(0, fullAt - now) + this.#intervalMs;
    // A thousandth of a millisecond is what sums of fractions may be off.
    const excessMs = missingMs - this.#capacityMs - 0.001;
    if (excessMs <= 0) return now + missingMs;
    const retryAfterSeconds = Math.max(1, Math.ceil(excessMs / 1000));
    throw new HotcellError('RATE_LIMITED', 'too many requests of this user for this project', {
      retryAfterSeconds,
    });
  }

  #hasRoom(buckets: TenantBuckets, now: number): boolean {
    const { fullAt } = buckets;
    if (fullAt.size < this.#bucketsPerTenant) return true;
    if (now - buckets.searchedAt < SEARCH_PAUSE_MS) return false;
    buckets.searchedAt = now;
    for (const [name, time] of fullAt) if (time <= now) fullAt.delete(name);
    return fullAt.size < this.#bucketsPerTenant;
  }

  #bucketsOf(tenant: string): TenantBuckets {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const made = {
      fullAt: new Map<string, number>(),
      overflowFullAt: -Infinity,
      searchedAt: -Infinity,
    };
    this.#tenants.set(tenant, made);
    return made;
  }
}
