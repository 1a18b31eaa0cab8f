import assert from 'node:assert/strict';
import { waitFor } from '../../support/leftovers.ts';
import { countUntilStopped, expectCounted } from '../counting.ts';
import { toMarker } from '../markers.ts';
import { digestOf, endHostile, execute, holdSession, print, requireOwnEnd } from './held-session.ts';
import { choose, type Perform } from './act.ts';
import { UNSTORED, wordsOf } from '../troubles.ts';

const MOST_LINES = 2000;
const FILES = ['a.txt', 'b/c.txt', 'b/d.txt', 'e.txt'];
const MOST_REPEATS = 400;

/** A command with an exit code and output of its own, which the server has to remember. */
export const command: Perform = async (world, act) => {
  const held = await holdSession(world, act);
  const [code, lines] = [act.number % 100, 1 + Math.floor(act.dice * MOST_LINES)];
  const words = `for ((n = 1; n <= ${lines}; n++)); do echo "${act.number} $n"; done; exit ${code}`;
  const { exec_id: id, stdout, exit_code: exitCode } = await execute(held, words);
  const expected = Array.from({ length: lines }, (_, index) => `${act.number} ${index + 1}\n`).join('');
  assert.equal(exitCode, code);
  assert.ok(stdout === expected, `${words} printed ${stdout.length} bytes: ${stdout.slice(0, 200)}`);
  world.noteEnded(held.entry, id, { exitCode, output: digestOf(stdout) });
};

/** A file is written by the API, read by a command and by the API; another one is written by a command. */
export const files: Perform = async (world, act) => {
  const held = await holdSession(world, act);
  const { hand, entry } = held;
  const path = choose(FILES, act.dice);
  const content = `${act.number} of ${entry.project}\n`.repeat(1 + Math.floor(act.dice * MOST_REPEATS));
  world.ledger.askForFile(entry, path, content);
  await hand.get('POST', '/upload', { files: [{ path, content }] });
  world.ledger.addFile(entry, path, content);
  assert.ok((await print(held, `cat ${path}`)) === content, `a command reads another ${path}`);
  const own = `own-${act.number % 3}.txt`;
  const words = `command ${act.number}\n`;
  world.ledger.askForFile(entry, own, words);
  await print(held, `printf '${words.trimEnd()}\\n' > ${own}`);
  world.ledger.addFile(entry, own, words);
  const read = await hand.get<{ content: string }>('GET', `/fs?path=${own}`);
  assert.equal(read.content, words);
};

/** Counts in the background until it is told to stop: every line is there once. */
export const background: Perform = async (world, act) => {
  const held = await holdSession(world, act);
  const { hand, entry } = held;
  const marker = toMarker(act.number);
  const id = await hand.begin(countUntilStopped(marker), { cwd: '/tmp' });
  entry.counting.set(id, marker);
  world.ledger.noteAnswer();
  try {
    const hasEnded = async (): Promise<boolean> =>
      (await hand.result(id, 0).catch(() => undefined)) !== undefined;
    const counts = async (): Promise<boolean> => (await hand.output(id)).includes('3\n') || hasEnded();
    await waitFor('it counts', counts, 30_000);
    await print(held, `touch /tmp/stop-${marker}`);
    const { exit_code: exitCode, end } = await hand.result(id);
    requireOwnEnd('background', end);
    assert.equal(exitCode, 0, JSON.stringify(end));
    const output = await hand.output(id);
    expectCounted(output);
    world.noteEnded(entry, id, { exitCode, output: digestOf(output) });
  } catch (error) {
    // Killed because its output found no room: it does not go on.
    if (UNSTORED.test(wordsOf(error))) entry.counting.delete(id);
    throw error;
  }
};

export const pause: Perform = async (world, act) => {
  const held = await holdSession(world, act);
  const { hand, entry } = held;
  entry.paused = 'perhaps';
  await hand.get('POST', '/pause');
  assert.equal((await hand.detail()).state, 'paused');
  await hand.get('POST', '/resume');
  entry.paused = 'no';
  assert.equal(await print(held, 'echo awake'), 'awake\n');
};

const HOSTILE = [
  ':(){ :|:& };:; while :; do :; done',
  'head -c 64M /dev/zero > big; code=$?; rm -f big; exit $code',
  'perl -e \'$SIG{TERM} = "IGNORE"; 1 while fork // 1\'',
  'perl -e \'$x = "x" x (3 << 30)\'',
];

/** Programs that take what they can get: they fail or time out, and the session goes on. */
export const hostileCommand: Perform = async (world, act) => {
  const held = await holdSession(world, act);
  const words = choose(HOSTILE, act.dice);
  held.entry.isBeset = true;
  const { exit_code: exitCode } = await execute(held, words, { timeout_s: 1 });
  assert.notEqual(exitCode, 0, words);
  await endHostile(held);
};

export const deleteSession: Perform = async (world, act) => {
  const { hand, entry } = await holdSession(world, act);
  entry.isLeaving = true;
  await hand.remove();
  world.ledger.addDeleted(entry);
};
