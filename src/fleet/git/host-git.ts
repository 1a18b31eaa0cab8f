import { realpath } from 'node:fs/promises';
import { HotcellError } from '../../core/errors.ts';
import type { Environment } from '../fleet-machine.ts';
import { runProgram, type ProgramOptions, type ProgramResult } from './run-program.ts';

export type Settings = Readonly<Record<string, string>>;

/** `env` is beside the reduced environment of every call. */
export interface GitOptions extends Partial<ProgramOptions> {
  /** Configuration for this call alone; wins over everything the user has set. */
  readonly settings?: Settings;
  /** More than the limit is cut off, instead of being an error. */
  readonly cut?: true;
}

export interface GitResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const OUTPUT_BYTES = 64 * 1024 ** 2;
const TIMEOUT_MS = 30 * 60_000;
const OLDEST = [2, 38] as const;

/** What git of the host finds of the caller's environment. Above all no GIT_* from outside. */
const PASSED = ['PATH', 'HOME', 'XDG_CONFIG_HOME', 'TMPDIR', 'USER', 'LOGNAME'];

/**
 * SECURITY: commits come from cells that nobody has to trust. These keep hooks, monitors, signing programs and submodules
 * from being run because of them, and keep git from starting work of its own in the background.
 */
const SETTINGS: Settings = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'keep',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'commit.gpgSign': 'false',
  'merge.verifySignatures': 'false',
  'log.showSignature': 'false',
  'diff.external': '',
  'submodule.recurse': 'false',
  'fetch.recurseSubmodules': 'false',
  'fetch.writeCommitGraph': 'false',
  'protocol.version': '2',
  'protocol.allow': 'never',
  'protocol.file.allow': 'always',
  'i18n.commitEncoding': 'UTF-8',
  'i18n.logOutputEncoding': 'UTF-8',
  'core.quotePath': 'false',
  'core.abbrev': 'auto',
};

const ALWAYS: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_EDITOR: ':',
  GIT_OPTIONAL_LOCKS: '0',
  // What is fetched and what is merged is then the same history.
  GIT_NO_REPLACE_OBJECTS: '1',
};

/** The user's repository, worked on by the git of the host. */
export class HostGit {
  /** Top level of the working tree that was opened. */
  readonly root: string;
  /** The `.git` that all working trees share. */
  readonly commonDir: string;
  /** For programs beside git. */
  readonly env: Readonly<Record<string, string>>;

  private constructor(root: string, commonDir: string, env: Readonly<Record<string, string>>) {
    this.root = root;
    this.commonDir = commonDir;
    this.env = env;
  }

  /** `environment` is that of the caller; only a few variables of it are used. */
  static async open(folder: string, environment: Environment): Promise<HostGit> {
    const env = reduce(environment);
    const start = await realpath(folder).catch(() => undefined);
    if (start === undefined)
      throw new HotcellError('INVALID_REQUEST', `there is no folder ${folder}`, {
        hint: 'Name a folder of a git repository.',
      });
    const probe = new HostGit(start, start, env);
    requireVersion(await probe.run(['version']));
    const top = await probe.attempt(['rev-parse', '--show-toplevel']);
    if (top.code !== 0)
      throw new HotcellError(
        'INVALID_REQUEST',
        `${folder} is not in a working tree of git: ${lastLine(top.stderr)}`,
        { hint: 'Start in a git repository that is not bare, or make one: git init && git commit.' },
      );
    const root = await realpath(lineOf(top.stdout));
    const common = await probe.run(['rev-parse', '--path-format=absolute', '--git-common-dir']);
    const git = new HostGit(root, await realpath(common), env);
    const head = await git.attempt(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
    if (head.code === 0) return git;
    throw new HotcellError('INVALID_REQUEST', `the repository ${root} has no commit yet`, {
      hint: 'Make a first commit: git add -A && git commit.',
    });
  }

  /** Stdout of a call that must succeed, without the newline at its end. */
  async run(args: readonly string[], options: GitOptions = {}): Promise<string> {
    return lineOf((await this.read(args, options)).toString());
  }

  /** As `run`, for output that is not text. */
  async read(args: readonly string[], options: GitOptions = {}): Promise<Buffer> {
    const { code, stdout, stderr } = await this.#spawn(args, options);
    if (code !== 0) throw gitFailed(args, { code, stderr });
    return stdout;
  }

  /** How many bytes a call prints, none of which is kept. */
  async count(args: readonly string[], options: GitOptions = {}): Promise<number> {
    const { code, stdoutBytes, stderr } = await this.#spawn(args, { ...options, discard: true });
    if (code !== 0) throw gitFailed(args, { code, stderr });
    return stdoutBytes;
  }

  /** For calls whose exit code is an answer. */
  async attempt(args: readonly string[], options: GitOptions = {}): Promise<GitResult> {
    const { code, stdout, stderr } = await this.#spawn(args, options);
    return { code, stdout: stdout.toString(), stderr };
  }

  async #spawn(
    args: readonly string[],
    { settings, cut, env, ...options }: GitOptions,
  ): Promise<ProgramResult> {
    const { limitBytes = OUTPUT_BYTES, timeoutMs = TIMEOUT_MS } = options;
    const result = await runProgram(['git', ...args], {
      cwd: this.root,
      ...options,
      env: { ...this.env, ...ALWAYS, ...toVariables({ ...SETTINGS, ...settings }), ...env },
      limitBytes,
      timeoutMs,
    }).catch((error: unknown) => {
      throw new HotcellError('DRIVER_UNAVAILABLE', 'git could not be started', {
        hint: 'Install git 2.38 or newer, so that it is found in PATH.',
        cause: error,
      });
    });
    if (result.ended === 'limit' && cut === true) return { ...result, code: 0 };
    if (result.ended === undefined) return result;
    throw new HotcellError(
      'FLEET_GIT',
      result.ended === 'limit'
        ? `git ${args[0] ?? ''} wrote more than ${limitBytes} bytes`
        : `git ${args[0] ?? ''} took longer than ${timeoutMs} ms`,
      { hint: 'What the repository or a worker holds is too large for this step.' },
    );
  }
}

/** Settings as variables, which can hold any name; `-c` splits names at the first `=`. */
export function toVariables(settings: Settings): Record<string, string> {
  const entries = Object.entries(settings);
  const variables = entries.flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key] as const,
    [`GIT_CONFIG_VALUE_${index}`, value] as const,
  ]);
  return { GIT_CONFIG_COUNT: String(entries.length), ...Object.fromEntries(variables) };
}

export function gitFailed(
  args: readonly string[],
  { code, stderr }: Pick<GitResult, 'code' | 'stderr'>,
): HotcellError {
  const words = wordsOf(stderr) || `exit code ${code}`;
  return new HotcellError('FLEET_GIT', `git ${args[0] ?? ''} failed: ${words}`);
}

/** Without the newline at the end, which is the only one that is not part of a path. */
export function lineOf(output: string): string {
  return output.endsWith('\n') ? output.slice(0, -1) : output;
}

export function splitNul(output: string): string[] {
  return output.split('\0').filter((part) => part !== '');
}

function reduce(environment: Environment): Record<string, string> {
  const entries = PASSED.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(entries);
}

function requireVersion(text: string): void {
  const [, major = '0', minor = '0'] = /(\d+)\.(\d+)/.exec(text) ?? [];
  const isOld = Number(major) < OLDEST[0] || (Number(major) === OLDEST[0] && Number(minor) < OLDEST[1]);
  if (isOld)
    throw new HotcellError('DRIVER_UNAVAILABLE', `${text.trim()} is too old`, {
      hint: 'Install git 2.38 or newer: merges are made without a working tree.',
    });
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}

/** What git has to say; its advice only if there is nothing else. */
function wordsOf(stderr: string): string {
  const lines = stderr.trim().split('\n');
  const words = lines.filter((line) => /^(fatal|error): /.test(line));
  return (words.length === 0 ? lines : words).slice(0, 5).join('; ').slice(0, 2000);
}
