import { describe, expect, test } from 'vitest';
import { ERRORS, HotcellError, toCancelError, toHotcellError, type ErrorCode } from './errors.ts';

const CODES = Object.keys(ERRORS) as ErrorCode[];

describe('the table', () => {
  test.each(CODES)('[CX-07, CX-08] %s has a status of failure and says what to do', (code) => {
    const { status, hint } = new HotcellError(code, 'what happened');
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(hint).toMatch(/^[A-Z].*\.$/);
  });

  test('a failure that may pass is never the fault of the request', () => {
    const blamed = CODES.filter((code) => ERRORS[code].retry === true && ERRORS[code].status < 500);
    expect(blamed).toEqual(['REQUEST_TIMEOUT', 'TOO_BUSY', 'SESSION_BUSY', 'QUOTA_EXCEEDED', 'RATE_LIMITED']);
  });
});

describe('one error', () => {
  test('a hint of its own wins over that of the table', () => {
    expect(new HotcellError('NOT_FOUND', 'x', { hint: 'Look elsewhere.' }).hint).toBe('Look elsewhere.');
  });

  test('what it was made from is kept', () => {
    const cause = new Error('below');
    const error = new HotcellError('TOO_BUSY', 'x', { field: 'code', retryAfterSeconds: 3, cause });
    expect(error).toMatchObject({ name: 'HotcellError', field: 'code', retryAfterSeconds: 3, cause });
  });

  test.each([
    ['an error', new TypeError('odd'), 'odd'],
    ['something else', 'odd', 'odd'],
  ])('%s of somebody else becomes INTERNAL with its message', (_what, thrown, message) => {
    expect(toHotcellError(thrown)).toMatchObject({ code: 'INTERNAL', status: 500, message, cause: thrown });
  });

  test('one of ours stays as it is', () => {
    const error = new HotcellError('NOT_FOUND', 'x');
    expect(toHotcellError(error)).toBe(error);
  });
});

describe('cancelling', () => {
  test('[CX-18] a reason of ours is passed on', () => {
    const reason = new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    expect(toCancelError(AbortSignal.abort(reason))).toBe(reason);
  });

  test('[CX-18] it is passed on through combined signals', () => {
    const reason = new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    const stopping = new AbortController();
    const signal = AbortSignal.any([new AbortController().signal, stopping.signal]);
    stopping.abort(reason);
    expect(toCancelError(signal)).toBe(reason);
  });

  test.each([[undefined], ['because'], [new Error('because')]])('reason %s means CANCELLED', (reason) => {
    expect(toCancelError(AbortSignal.abort(reason)).code).toBe('CANCELLED');
  });
});
