import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { waitFor } from '../../support/leftovers.ts';
import { makeJobs, type Job } from '../../support/mixed-jobs.ts';
import { PROGRAMS } from '../../support/programs.ts';
import { isMarkedAlive, toMarker } from '../markers.ts';
import { Refusal } from '../troubles.ts';
import type { World } from '../world.ts';
import { choose, type Perform } from './act.ts';

const BURST = 6;
/** Every tenth of these is hostile. */
const JOBS = 50;

async function runJob(world: World, { language, body, expected }: Job): Promise<void> {
  const server = await world.up();
  const { status, body: reply } = await server.execute(language, body);
  if (status !== 200) throw new Refusal(`POST /execute/${language}`, status, reply.code, reply.detail);
  assert.ok(holds(reply, expected), `${JSON.stringify(body)} answered ${JSON.stringify(reply)}`);
  world.ledger.noteAnswer();
}

/** Has the answer every field of what is expected, with its value? */
function holds(reply: object, expected: object): boolean {
  return Object.entries(expected).every(([name, value]) => {
    const found: unknown = Reflect.get(reply, name);
    const isGroup =
      typeof value === 'object' && value !== null && typeof found === 'object' && found !== null;
    return isGroup ? holds(found, value as object) : isDeepStrictEqual(found, value);
  });
}

/** One program in one of the languages, one of ten hostile. */
export const run: Perform = (world, { number, dice }) =>
  runJob(world, makeJobs(toMarker(number))(Math.floor(dice * JOBS)));

/** More at once than there are cells. */
export const burst: Perform = async (world, { number, dice }) => {
  const toJob = makeJobs(toMarker(number));
  const first = Math.floor(dice * JOBS);
  const ends = await Promise.allSettled(
    Array.from({ length: BURST }, (_, index) => runJob(world, toJob(first + index))),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
};

/** Somebody asks and goes away: what runs for nobody ends. */
export const droppedRun: Perform = async (world, { number, dice }) => {
  const { url } = await world.up();
  const marker = toMarker(number);
  const { language } = choose(PROGRAMS, dice);
  const isBash = language === 'bash' || language === 'typescript';
  const code = isBash ? `sleep ${marker}` : toSleep(language, marker);
  const leaving = new AbortController();
  const asked = fetch(`${url}/execute/${isBash ? 'bash' : language}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code, timeout_ms: 30_000 }),
    signal: leaving.signal,
  });
  const answered = asked.then(
    async (response) => {
      const { code: error, detail } = (await response.json()) as { code: string; detail: string };
      throw new Refusal(`POST /execute/${language}`, response.status, error, detail);
    },
    (error: unknown) => {
      if (!leaving.signal.aborted) throw error;
    },
  );
  await Promise.race([answered, waitFor('the program runs', () => isMarkedAlive(marker), 30_000)]);
  leaving.abort();
  await answered;
  await waitFor('the program of nobody has ended', () => !isMarkedAlive(marker), 30_000);
};

function toSleep(language: string, marker: string): string {
  if (language === 'python') return `import subprocess\nsubprocess.run(['sleep', '${marker}'])`;
  if (language === 'ruby') return `system('sleep', '${marker}')`;
  return `require('child_process').spawnSync('sleep', ['${marker}'])`;
}
