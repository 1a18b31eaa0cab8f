import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Whoever ends a cell may fail, for want of a process or a descriptor; in a process of its own, since that may end it. */
const SCRIPT = `
  import { supervise } from ${JSON.stringify(new URL('supervise.ts', import.meta.url).href)};
  const events = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) };
  const kill = () => Promise.reject(new Error('spawn crun EAGAIN'));
  const nothing = new Uint8Array();
  const bounds = { input: nothing, stdin: nothing, wallTimeMs: 1, outputBytes: 1, keptBytes: 1 };
  const hot = { main: { events, write() {}, closeStdin() {}, kill }, cell: { dispose: kill } };
  void supervise(hot, { ...bounds, signal: new AbortController().signal });
  setTimeout(() => console.log('still there'), 50);
`;

test('[CX-08] a cell that cannot be killed does not end the server', () => {
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', SCRIPT], { encoding: 'utf8' });
  expect(stdout).toBe('still there\n');
});
