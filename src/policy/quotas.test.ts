import { describe, expect, test } from 'vitest';
import { HotcellError } from '../core/errors.ts';
import { Quotas, requireQuota } from './quotas.ts';

const MiB = 1024 * 1024;
const SMALL = { cpus: 0.1, memoryBytes: 64 * MiB, diskBytes: 8 * MiB };

function refusal(quotas: Quotas, count: number, asked = SMALL): HotcellError | undefined {
  const inUse = Array.from({ length: count }, () => SMALL);
  try {
    requireQuota({ name: 'acme', quotas }, inUse, asked);
    return undefined;
  } catch (error) {
    if (error instanceof HotcellError) return error;
    throw error;
  }
}

describe('quotas', () => {
  test('[SC-05] without quotas nothing is refused', () => {
    expect(refusal({}, 10_000)).toBeUndefined();
  });

  test.each([
    [{ sessions: 3 }, '3 sessions of 3 sessions are in use, and 1 sessions more'],
    [{ cpus: 0.3 }, '0.3 CPUs of 0.3 CPUs are in use, and 0.1 CPUs more'],
    [{ memoryBytes: 192 * MiB }, '192 MiB of memory of 192 MiB of memory are in use, and 64 MiB'],
    [{ diskBytes: 24 * MiB }, '24 MiB of disk of 24 MiB of disk are in use, and 8 MiB of disk more'],
  ])('[SC-05] the session that fills %j is let in, the next one is not', (quotas, words) => {
    expect(refusal(quotas, 2)).toBeUndefined();
    const error = refusal(quotas, 3);
    expect(error).toMatchObject({ code: 'QUOTA_EXCEEDED', status: 429 });
    expect(error?.message).toContain('tenant acme');
    expect(error?.message).toContain(words);
  });

  test('[SC-05] fractions of CPUs add up exactly', () => {
    expect(refusal({ cpus: 1 }, 9)).toBeUndefined();
    expect(refusal({ cpus: 1 }, 10)).toBeDefined();
    expect(refusal({ cpus: 100 }, 999)).toBeUndefined();
    expect(refusal({ cpus: 100 }, 1000)).toBeDefined();
  });

  test('[SC-05] a refusal names everything that does not fit, and nothing that does', () => {
    const error = refusal({ sessions: 0, cpus: 0.05, memoryBytes: 1024 * MiB }, 0);
    expect(error?.message).toContain('0 sessions of 0 sessions');
    expect(error?.message).toContain('0 CPUs of 0.05 CPUs');
    expect(error?.message).not.toContain('memory');
  });

  test('[SC-05] who can never get it is told so', () => {
    expect(refusal({ cpus: 0.05 }, 0)?.hint).toContain('Ask for less');
    expect(refusal({ cpus: 0.1 }, 1)?.hint).toContain('End a session');
  });

  test.each([{ sessions: -1 }, { sessions: 1.5 }, { cpus: -0.1 }, { memory: 1 }, { diskBytes: '1' }])(
    '[SC-05] %j is no quota',
    (settings) => {
      expect(Quotas.safeParse(settings).success).toBe(false);
    },
  );
});
