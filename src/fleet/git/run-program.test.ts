import { describe, expect, test } from 'vitest';
import { runProgram, type ProgramResult } from './run-program.ts';

const run = (
  argv: readonly [string, ...string[]],
  bounds: { readonly limitBytes?: number; readonly timeoutMs?: number } = {},
): Promise<ProgramResult> =>
  runProgram(argv, { cwd: '/', env: {}, limitBytes: 1024, timeoutMs: 60_000, ...bounds });

describe('a program of the host has the exit code that one in a cell would have', () => {
  test.each([
    ['of its own', 'exit 3', 3],
    ['of a signal', 'kill -TERM $$', 143],
    ['of one that nobody can refuse', 'kill -KILL $$', 137],
  ])('%s', async (_, script, code) => {
    expect(await run(['/bin/sh', '-c', script])).toMatchObject({ code, ended: undefined });
  });

  test('of what took too long', async () => {
    expect(await run(['/bin/sleep', 'infinity'], { timeoutMs: 10 })).toMatchObject({
      code: 124,
      ended: 'timeout',
    });
  });

  test('of what said too much', async () => {
    const result = await run(['/bin/cat', '/dev/zero'], { limitBytes: 100 });
    expect(result).toMatchObject({ code: 137, ended: 'limit' });
    expect(result.stdout).toHaveLength(100);
  });
});
