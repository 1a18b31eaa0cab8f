import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WorkerLog } from '../../src/fleet/logs/worker-log.ts';
import { waitFor } from '../support/leftovers.ts';
import { HALF_DONE, PreparedFleet } from '../support/prepared-fleet.ts';
import { MAIN } from '../support/command.ts';

const PATIENT_MS = 60_000;

let prepared: PreparedFleet;
beforeEach(() => {
  prepared = new PreparedFleet();
});
afterEach(() => prepared[Symbol.asyncDispose]());

/** The real command in a real terminal, which `script` makes. */
function inTerminal(args: string) {
  const line = `stty rows 12 cols 70; ${process.execPath} ${MAIN} mahabharatha ${args}; echo "code=$?"`;
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: prepared.root,
    env: { ...prepared.environment(), SHELL: '/bin/bash', TERM: 'xterm-256color' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (shown += part));
  const closed = new Promise((resolve) => child.once('close', resolve));
  const sees = (text: string): Promise<void> => waitFor(text, () => shown.includes(text), PATIENT_MS);
  return { type: (text: string) => child.stdin.write(text), shown: () => shown, closed, sees };
}

test('[FL-06] status --watch is a live table that is drawn in place, and gives the screen back', async () => {
  const store = prepared.state(HALF_DONE);
  const holder = await prepared.hold();
  const terminal = inTerminal('status --watch --interval 0.1');
  await terminal.sees('1 of 3 tasks');
  expect(terminal.shown()).toContain('\u001b[?1049h');
  store.update((state) => Object.assign(state.tasks['SHOP-3'] ?? {}, { status: 'complete' }));
  await terminal.sees('2 of 3 tasks');
  holder.kill('SIGTERM');
  await terminal.closed;
  const [, after = ''] = terminal.shown().split('\u001b[?1049l');
  // How it ended stays to be seen, and what a task said commands nothing.
  expect(after).toContain('2 of 3 tasks');
  expect(after).toContain('SHOP-2 failed: tests\\x1b[2J failed');
  expect(after).toContain('code=1');
  expect(terminal.shown()).not.toContain('\u001b[2J');
});

test('[FL-06] Ctrl-C ends the live table, also one that waits, and gives the screen back', async () => {
  const terminal = inTerminal('status --watch --feature shop');
  await terminal.sees('waits for a run of shop to begin');
  prepared.state(HALF_DONE);
  await terminal.sees('1 of 3 tasks');
  terminal.type('\u0003');
  await terminal.closed;
  expect(terminal.shown().split('\u001b[?1049l')[1]).toContain('code=130');
});

test('[FL-17] plan shows how long the agent has been at work, and Ctrl-C ends it', async () => {
  const agent = { command: 'sleep', args: ['600'] };
  prepared.write('.mahabharatha/config.yaml', JSON.stringify({ agent }));
  const terminal = inTerminal('plan shop passkeys --mode subprocess --no-interactive');
  const times = (): Set<string> =>
    new Set(terminal.shown().match(/fleet: \d+s · the agent is asked in mode subprocess/g));
  await waitFor('the time moves', () => times().size > 1, PATIENT_MS);
  terminal.type('\u0003');
  await terminal.closed;
  expect(terminal.shown()).toContain('code=130');
  // Nothing of the line is left before what comes after it.
  expect(terminal.shown()).toContain('\u001b[2Kmahabharatha: the agent was ended');
});

test('[FL-13] workers have colours of their own on a terminal', async () => {
  prepared.state(HALF_DONE);
  for (const worker of [0, 1]) new WorkerLog(prepared.paths(), worker).info('hello');
  const terminal = inTerminal('logs');
  await terminal.closed;
  expect(terminal.shown()).toContain('\u001b[36mworker 0 ');
  expect(terminal.shown()).toContain('\u001b[35mworker 1 ');
});

test.each([
  ['n\r', true],
  ['\u0003', true],
  ['y\r', false],
])('[FL-15] cleanup asks on a terminal; after %j the state is there: %s', async (answer, stays) => {
  prepared.state(HALF_DONE);
  const terminal = inTerminal('cleanup');
  await terminal.sees('Remove this of shop? [y/N]');
  terminal.type(answer);
  await terminal.closed;
  expect(existsSync(prepared.paths().state)).toBe(stays);
  expect(terminal.shown()).toContain(stays ? 'code=130' : 'code=0');
});
