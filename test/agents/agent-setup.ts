import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';
import { messageOf } from '../../src/core/errors.ts';
import { COMPILE_CACHE, MAIN } from '../support/command.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the real agent is installed, below a home folder. */
    agentFolder: string | undefined;
    /** Why there is none: for `testThatNeeds`. */
    whyNoAgent: string | undefined;
  }
}

/** Kept between runs: a hundred and seventy megabytes are fetched for it. */
const HOME = fileURLToPath(new URL('../../node_modules/.cache/hotcell-agents', import.meta.url));

/** Each project has a copy of this module, and all of them one process. */
const shared = globalThis as typeof globalThis & { hotcellTestAgent?: Promise<FoundAgent> };

interface FoundAgent {
  readonly folder?: string;
  readonly missing?: string;
}

/** Before the tests of the tier: the pinned agent, as `hotcell fleet build` installs it with the npm of this machine. */
export default async function setUpAgent(project: TestProject): Promise<void> {
  const { folder, missing } = await (shared.hotcellTestAgent ??= install());
  project.provide('agentFolder', folder);
  project.provide('whyNoAgent', missing);
}

async function install(): Promise<FoundAgent> {
  mkdirSync(HOME, { recursive: true });
  try {
    const { folder } = await build();
    for (const name of readdirSync(dirname(folder)))
      if (name !== basename(folder)) rmSync(join(dirname(folder), name), { recursive: true });
    return { folder };
  } catch (error) {
    return { missing: `hotcell fleet build installs no agent: ${messageOf(error)}` };
  }
}

async function build(): Promise<{ readonly folder: string }> {
  const args = [MAIN, 'fleet', 'build', '--driver', 'oci', '--json'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env: npmEnvironment(HOME) });
  return JSON.parse(stdout) as { folder: string };
}

/** The npm of this machine with its own settings, though the home is another. */
export function npmEnvironment(home: string): NodeJS.ProcessEnv {
  return {
    ...process.env,
    ...COMPILE_CACHE,
    HOME: home,
    npm_config_userconfig: process.env['npm_config_userconfig'] ?? join(homedir(), '.npmrc'),
    npm_config_cache: process.env['npm_config_cache'] ?? join(homedir(), '.npm'),
  };
}
