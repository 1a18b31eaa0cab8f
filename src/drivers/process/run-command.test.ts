import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runCommand } from './run-command.ts';

test('a program that is not there is an error of the caller', async () => {
  await expect(runCommand(['hotcell-has-no-such-program'])).rejects.toThrow('ENOENT');
});

test.each([
  ['its own code', 'exit 3', 3],
  ['128 and the signal', 'kill -TERM $$', 143],
  ['the same for one that nobody can refuse', 'kill -KILL $$', 137],
])('a helper has %s', async (_, script, code) => {
  expect(await runCommand(['sh', '-c', script], { timeoutMs: 60_000 })).toMatchObject({ code });
});

test('a helper that is too slow has 124, as everything that took too long', async () => {
  expect(await runCommand(['sleep', 'infinity'], { timeoutMs: 10 })).toMatchObject({ code: 124 });
});

/** With no descriptor left Node makes no streams for a child, and tells of it in an event. */
const EXHAUSTED = `
  import { closeSync, openSync } from 'node:fs';
  import { runCommand } from ${JSON.stringify(fileURLToPath(new URL('run-command.ts', import.meta.url)))};
  import { Keeper } from ${JSON.stringify(fileURLToPath(new URL('../oci/keeper.ts', import.meta.url)))};
  const said = [];
  const note = (what) => ({ code, message }) => said.push([what, code, /EMFILE/.test(message)].join(' '));
  const descriptors = [];
  try { for (;;) descriptors.push(openSync('/dev/null')); } catch {}
  await runCommand(['true']).catch(note('command'));
  await Keeper.open(undefined).catch(note('keeper'));
  for (const descriptor of descriptors) closeSync(descriptor);
  said.push((await runCommand(['true'])).code);
  await using keeper = await Keeper.open(undefined);
  said.push(keeper.ended);
  console.log(JSON.stringify(said));
`;

test('[CX-08] without descriptors left whoever wants a helper gets an error, and the process lives', () => {
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'ulimit -n 100; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', EXHAUSTED],
    { encoding: 'utf8' },
  );
  expect(stdout === '' ? stderr : JSON.parse(stdout)).toEqual([
    'command EMFILE true',
    'keeper DRIVER_UNAVAILABLE true',
    0,
    false,
  ]);
});
