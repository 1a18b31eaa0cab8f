import { expect, test } from 'vitest';
import {
  PROMISES,
  PROMISE_MEANING,
  requireEnforcement,
  unenforced,
  type EnforcedBy,
  type Enforcement,
  type Promised,
} from './enforcement.ts';
import { HotcellError } from './errors.ts';
import { LIMIT_NAMES } from './limits.ts';

function enforcedBy(who: EnforcedBy, ...exceptions: Promised[]): Enforcement {
  const entries = PROMISES.map(
    (promise) => [promise, exceptions.includes(promise) ? 'nobody' : who] as const,
  );
  return Object.fromEntries(entries) as Enforcement;
}

function refusalOf(enforcement: Enforcement, givenUp: Promised[]): HotcellError | undefined {
  try {
    requireEnforcement(enforcement, givenUp);
    return undefined;
  } catch (error) {
    if (error instanceof HotcellError) return error;
    throw error;
  }
}

test('[SC-04] every limit is a promise, and every promise is explained', () => {
  expect(PROMISES).toEqual(expect.arrayContaining(LIMIT_NAMES));
  expect(Object.keys(PROMISE_MEANING).toSorted()).toEqual([...PROMISES].toSorted());
});

test.each(['kernel', 'hypervisor', 'supervisor'] as const)('[SC-04] %s keeps a promise', (who) => {
  expect(refusalOf(enforcedBy(who), [])).toBeUndefined();
});

test.each(PROMISES)('[SC-04] nobody behind %s is refused, with its name and the way out', (promise) => {
  const refusal = refusalOf(enforcedBy('kernel', promise), []);
  expect(refusal).toMatchObject({ code: 'POLICY_UNENFORCEABLE', message: `nobody enforces: ${promise}` });
  expect(refusal?.hint).toContain(`--weaker ${promise}`);
});

test('[SC-04] what was given up by name is accepted', () => {
  expect(refusalOf(enforcedBy('kernel', 'cpus', 'network'), ['network', 'cpus'])).toBeUndefined();
});

test('[SC-04] only what was named is given up; all the rest is listed at once', () => {
  const refusal = refusalOf(enforcedBy('kernel', 'cpus', 'processes', 'network'), ['processes', 'syscalls']);
  expect(refusal?.message).toBe('nobody enforces: cpus, network');
});

test('[SC-04] unenforced names them in the order of the table', () => {
  expect(unenforced(enforcedBy('nobody'))).toEqual([...PROMISES]);
});
