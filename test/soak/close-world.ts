import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { footprintOf, describeFootprint } from '../support/footprint.ts';
import { waitFor } from '../support/leftovers.ts';
import { removeFolders } from '../support/server.ts';
import { clearSessions, describeSessions, siteOf } from '../support/session-remains.ts';
import { runCode } from './acts/run-code.ts';
import { findMarked } from './markers.ts';
import { rest } from './remains.ts';
import { toWrong, type Wrong } from './round.ts';
import type { World } from './world.ts';

const GONE_WITHIN_MS = 20_000;
const BESIDE = ['workbench', 'preload', 'subprocess'];

export interface End {
  readonly wrong: readonly Wrong[];
  /** Where the log and the data of the server are, if something is wrong. */
  readonly kept: string | undefined;
}

/** Deletes every session and stops the server in good order: nothing may be left. After something went wrong all is ended. */
export async function closeWorld(world: World, rounds: number, isSpoilt: boolean): Promise<End> {
  const wrong: Wrong[] = [];
  let kept: string | undefined;
  try {
    const left = isSpoilt ? [] : await stopInOrder(world);
    for (const words of left) wrong.push(toWrong(world, rounds, 'the end', new Error(words)));
  } catch (error) {
    wrong.push(toWrong(world, rounds, 'the end', error));
  } finally {
    await world.end('SIGKILL').catch(() => {});
    if (isSpoilt || wrong.length > 0) kept = keep(world);
    await clear(world);
  }
  return { wrong, kept };
}

async function stopInOrder(world: World): Promise<string[]> {
  await rest(world);
  // What workbenches of killed servers left is cleared away by the first one that is used.
  await runCode(world, { kind: 'run-code', number: 0, lane: 0, dice: 0 });
  for (const { session_id: id } of await world.door.list()) await world.door.get('DELETE', `/${id}`);
  const footprint = await footprintOf(world.server);
  const code = await world.end('SIGTERM');
  const { stateDirectory, dataDirectory, way } = world;
  let left: string[] = [];
  const look = async (): Promise<boolean> => {
    const beside = BESIDE.map((name) => `${stateDirectory}-${name}`)
      .filter((folder) => existsSync(folder))
      .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
    left = [
      ...(await describeSessions(siteOf(stateDirectory, way.driver))),
      ...(await describeFootprint(footprint)).filter((line) => !line.includes(` ${dataDirectory} `)),
      ...world.survivors(),
      ...[...findMarked()].map((marker) => `program ${marker}`),
      ...beside,
    ];
    return left.length === 0;
  };
  await waitFor('nothing is left', look, GONE_WITHIN_MS).catch(() => {});
  return code === 0 ? left : [...left, `the server ended with ${code}`];
}

/** Processes and mounts go in any case. */
async function clear(world: World): Promise<void> {
  const { stateDirectory, way } = world;
  await clearSessions(siteOf(stateDirectory, way.driver));
  removeFolders(stateDirectory);
}

/** What the server wrote, for whoever looks for the cause. */
function keep({ dataDirectory, server }: World): string {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-soak-'));
  writeFileSync(join(folder, 'server.log'), server.output);
  execFileSync('cp', ['-a', '--sparse=always', '--one-file-system', dataDirectory, join(folder, 'data')]);
  return folder;
}
