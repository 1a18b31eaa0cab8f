import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { COMPILE_CACHE, MAIN } from './command.ts';
import { dataDirectoryOf } from './server.ts';
import type { ServedSessions } from './session-site.ts';

/** The real command, on the folders of this server. */
export function beginCommand(
  { way, stateDirectory }: ServedSessions,
  words: readonly string[],
): ChildProcess {
  return spawn(process.execPath, [MAIN, ...words, ...way.args], {
    env: {
      PATH: process.env['PATH'] ?? '',
      HOTCELL_STATE_DIR: stateDirectory,
      HOTCELL_SESSIONS_DIR: dataDirectoryOf(stateDirectory),
      ...COMPILE_CACHE,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** The same to its end. */
export async function hotcell(served: ServedSessions, ...words: string[]) {
  const child = beginCommand(served, words);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (chunk: Buffer) => (said[name] += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...said };
}
