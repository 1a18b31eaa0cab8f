import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs a program to its end and gives its output; rejects with a reason for people. `bare`: without anybody's settings. */
export type AskProgram = (program: string, args: readonly string[], bare?: 'bare') => Promise<string>;

const HELPER_MS = 20_000;
const MOST_OUTPUT = 4 * 1024 * 1024;
const run = promisify(execFile);

/** In the root folder, so that no project's own settings are taken for the machine's. */
export function askProgram(env: Environment): AskProgram {
  return async (program, args, bare) => {
    // npm makes a cache in the home folder, whatever it is asked.
    const home = bare === undefined ? undefined : await mkdtemp(join(tmpdir(), 'hotcell-bare-'));
    try {
      const { stdout } = await run(program, [...args], {
        cwd: '/',
        env: home === undefined ? { ...env } : { PATH: env['PATH'], HOME: home },
        timeout: HELPER_MS,
        killSignal: 'SIGKILL',
        maxBuffer: MOST_OUTPUT,
      });
      return stdout;
    } catch (error) {
      throw new Error(`${program} ${whyFailed(error)}`, { cause: error });
    } finally {
      if (home !== undefined) await rm(home, { recursive: true, force: true });
    }
  };
}

/** SECURITY: not its words, which may hold what stands in the settings. */
function whyFailed(error: unknown): string {
  if (!(error instanceof Error)) return 'failed';
  if ('killed' in error && error.killed === true) return 'did not answer in time';
  if (!('code' in error)) return 'failed';
  return error.code === 'ENOENT' ? 'is not installed' : `failed with ${String(error.code)}`;
}
