import { posix } from 'node:path';
import { WORKSPACE_IN_CELL } from '../core/cell.ts';
import type { ExecRequest, TerminalSize } from '../core/exec.ts';
import { TEMPLATES, toSetupScript } from './templates.ts';
import type { RuntimeType } from '../core/session-words.ts';

/** Longer names of folders cannot be entered. */
const LONGEST_PATH = 4096;

export const HOME_IN_CELL = `${WORKSPACE_IN_CELL}/.home`;
/** Where `pip install --user` and the like put programs. */
const PROGRAMS_OF_HOME = `${HOME_IN_CELL}/.local/bin`;
/** Every command finds this before it begins: it makes its shell say where it ends. */
const SESSION_BASH = '{guest}/session.bash';

export function toWorkspacePath(project: string): string {
  return `${WORKSPACE_IN_CELL}/${project}`;
}

/** What the commands of a session have in common. */
export interface CommandBase {
  readonly workspace: string;
  readonly runtime: RuntimeType;
  /** Of the network, if there is one. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface CommandWish {
  readonly command: string;
  readonly cwd: string;
  /** Of .env and of the request; the latter win. */
  readonly env: Readonly<Record<string, string>>;
  readonly terminal?: TerminalSize;
}

/** One command of a user. Its environment is made anew every time. */
export function toCommandRequest(place: CommandBase, wish: CommandWish): ExecRequest {
  // Taken: without it the session would not follow its commands.
  const { BASH_ENV: _, ...own } = wish.env;
  return {
    argv: ['bash', '-c'],
    env: { ...toBaseVariables(place, wish.terminal), BASH_ENV: SESSION_BASH },
    verbatim: { argv: [wish.command], env: own },
    cwd: wish.cwd,
    fallbackCwd: place.workspace,
    ...(wish.terminal === undefined ? {} : { terminal: wish.terminal }),
  };
}

/** The set-up command of the template, in the workspace. */
export function toSetupRequest(place: CommandBase): ExecRequest | undefined {
  const { setup } = TEMPLATES[place.runtime];
  if (setup === undefined) return undefined;
  return {
    argv: ['bash', '-c', toSetupScript(setup)],
    env: { ...toBaseVariables(place, undefined), BASH_ENV: SESSION_BASH },
    cwd: place.workspace,
  };
}

function toBaseVariables(place: CommandBase, terminal: TerminalSize | undefined): Record<string, string> {
  const ofProject = TEMPLATES[place.runtime].programs.map((folder) => `${place.workspace}/${folder}`);
  const programs = [...ofProject, PROGRAMS_OF_HOME];
  return {
    HOME: HOME_IN_CELL,
    TMPDIR: '/tmp',
    LANG: 'C.UTF-8',
    ...(terminal === undefined ? {} : { TERM: 'xterm-256color' }),
    // Put before PATH by session.bash, because only the cell knows its PATH.
    HOTCELL_PATH: programs.join(':'),
    ...place.variables,
  };
}

/** Where a command begins. */
export function toCwd(
  wish: { readonly resetCwd: boolean; readonly cwd?: string | undefined },
  session: { readonly cwd: string; readonly workspace: string },
): string {
  const from = wish.resetCwd ? session.workspace : session.cwd;
  return wish.cwd === undefined ? from : posix.resolve(from, wish.cwd);
}

/** The folder a command says it ended in, if it can be one. SECURITY: anything can be in it. */
export function toEndCwd(said: string | undefined): string | undefined {
  if (said === undefined || !said.startsWith('/') || said.length > LONGEST_PATH) return undefined;
  return said.includes('\0') || !said.isWellFormed() ? undefined : said;
}
