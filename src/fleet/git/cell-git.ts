import { HotcellError } from '../../core/errors.ts';
import { CappedBytes } from '../../lib/capped-bytes.ts';
import { toAuthorVariables, type Author } from './author.ts';
import { toVariables, type Settings } from './host-git.ts';
import { requireCommitId } from './refs.ts';

const SHORT_BYTES = 1024 ** 2;
const PATCH_BYTES = 16 * 1024 ** 2;
/** What takes longer is not worth waiting for: the worker is to go on. */
const PATCH_MS = 2 * 60_000;
const LINK = '160000';

const SETTINGS: Settings = {
  'safe.directory': '*',
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.sparseCheckout': 'false',
  'core.quotePath': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'commit.gpgSign': 'false',
  'submodule.recurse': 'false',
  'advice.addEmbeddedRepo': 'false',
  'i18n.commitEncoding': 'UTF-8',
};

export interface RunInCellOptions {
  readonly input?: Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
  /** More on stdout ends the program, and the call throws FILE_TOO_LARGE. */
  readonly limitBytes?: number;
  readonly timeoutMs?: number;
  /** Stdout goes there, in order, at most `limitBytes` of it, and the result has none. */
  readonly onStdout?: (bytes: Uint8Array) => void;
}

export interface RunInCellResult {
  readonly code: number;
  readonly stdout: Uint8Array;
  readonly stderr: string;
}

/**
 * Runs a program in the cell, in its worktree, with `env` beside what every program there has.
 * SECURITY: what comes back was written by whoever rules the cell.
 */
export type RunInCell = (
  argv: readonly [string, ...string[]],
  options?: RunInCellOptions,
) => Promise<RunInCellResult>;

/** Patches are the same whatever a configuration says. SECURITY: and no program of it is run for them. */
export const PLAIN_PATCH: readonly string[] = [
  '--no-color',
  '--no-ext-diff',
  '--no-textconv',
  '--submodule=short',
  '--src-prefix=a/',
  '--dst-prefix=b/',
];

/** Our own git commands in a cell. Whatever they say may be a lie: the host acts on none of it unchecked. */
export class CellGit {
  readonly #run: RunInCell;
  readonly #ref: string;
  readonly #env: Readonly<Record<string, string>>;

  /** `ref` is the worker branch; `env` says where git and the worktree are, if git cannot find out. */
  constructor(run: RunInCell, ref: string, env: Readonly<Record<string, string>>) {
    this.#run = run;
    this.#ref = ref;
    this.#env = {
      LC_ALL: 'C',
      GIT_TERMINAL_PROMPT: '0',
      GIT_EDITOR: ':',
      GIT_NO_REPLACE_OBJECTS: '1',
      ...toVariables(SETTINGS),
      ...env,
    };
  }

  attempt(args: readonly string[], options: RunInCellOptions = {}): Promise<RunInCellResult> {
    const env = { ...this.#env, ...options.env };
    return this.#run(['git', ...args], { limitBytes: SHORT_BYTES, ...options, env });
  }

  async run(args: readonly string[], options: RunInCellOptions = {}): Promise<Uint8Array> {
    return requireSuccess(['git', ...args], await this.attempt(args, options));
  }

  async findHead(): Promise<string | undefined> {
    const { code, stdout } = await this.attempt(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']);
    return code === 0 ? requireCommitId(toText(stdout)) : undefined;
  }

  async has(commit: string): Promise<boolean> {
    return (await this.attempt(['cat-file', '-e', `${commit}^{tree}`])).code === 0;
  }

  /** The head afterwards. `known` is the head before the agent began. */
  async commitAll(
    message: string,
    author: Author,
    { allowEmpty, known }: { readonly allowEmpty: boolean; readonly known: string },
  ): Promise<string> {
    await this.run(['add', '-A']);
    await this.#requireNoNested();
    const isChanged = (await this.attempt(['diff-index', '--cached', '--quiet', 'HEAD', '--'])).code !== 0;
    const isMoved = (await this.findHead()) !== known;
    if (isChanged || (allowEmpty && !isMoved)) await this.#commit(message, author, isChanged);
    const head = await this.findHead();
    if (head === undefined) throw new HotcellError('FLEET_GIT', 'git in the cell has no commit');
    // The agent may have left the branch; what it made is on it again.
    await this.run(['update-ref', this.#ref, head]);
    await this.run(['symbolic-ref', 'HEAD', this.#ref]);
    return head;
  }

  async #commit(message: string, author: Author, isChanged: boolean): Promise<void> {
    const args = ['commit', '--quiet', '--no-verify', '--no-gpg-sign', '--cleanup=whitespace', '-F', '-'];
    await this.run(isChanged ? args : [...args, '--allow-empty'], {
      input: Buffer.from(message),
      env: toAuthorVariables(author),
    });
  }

  /** A repository within the worktree would be committed as a mere number, and its files would be lost. */
  async #requireNoNested(): Promise<void> {
    const { code, stdout } = await this.attempt(
      ['diff-index', '--cached', '--raw', '-z', '--no-renames', '--ignore-submodules=none', 'HEAD', '--'],
      { limitBytes: 64 * 1024 ** 2 },
    );
    if (code !== 0) return;
    const fields = toText(stdout).split('\0');
    const links = fields.flatMap((field, index) => {
      const [before = '', after] = field.split(' ');
      return before.startsWith(':') && before !== `:${LINK}` && after === LINK
        ? [fields[index + 1] ?? '']
        : [];
    });
    if (links.length === 0) return;
    const modules = await this.attempt(['config', '-z', '-f', '.gitmodules', '--get-regexp', '\\.path$']);
    const known = new Set(
      toText(modules.stdout)
        .split('\0')
        .map((entry) => entry.slice(entry.indexOf('\n') + 1)),
    );
    const nested = links.filter((link) => !known.has(link));
    if (nested.length === 0) return;
    throw new HotcellError(
      'FLEET_GIT',
      `these folders are git repositories of their own: ${nested.map((name) => JSON.stringify(name)).join(', ')}`,
      { hint: 'Remove the .git in them; as they are, their files would not be part of the commit.' },
    );
  }

  /** Everything that is neither committed nor ignored. */
  async patch(): Promise<{ readonly patch?: Uint8Array; readonly patchCut?: true }> {
    // Fails for a repository within the worktree that has no commit; then the rest is still worth having.
    await this.attempt(['add', '-A', '--ignore-errors'], { timeoutMs: PATCH_MS });
    const gathered = new CappedBytes(PATCH_BYTES);
    await this.attempt(['diff', '--cached', '--binary', ...PLAIN_PATCH, 'HEAD', '--'], {
      limitBytes: PATCH_BYTES + 1,
      timeoutMs: PATCH_MS,
      onStdout: (bytes) => gathered.push(bytes),
    }).catch((error: unknown) => {
      if (!gathered.truncated) throw error;
    });
    const patch = gathered.bytes();
    return patch.length === 0 ? {} : { patch, ...(gathered.truncated ? { patchCut: true as const } : {}) };
  }

  /**
   * Branch, index and files are at `commit`; what git ignores stays. The index is made anew, because it can hide changes
   * of files; files that need no change keep their times, on which build tools depend.
   */
  async resetTo(commit: string): Promise<void> {
    await this.run(['update-ref', this.#ref, commit]);
    await this.run(['symbolic-ref', 'HEAD', this.#ref]);
    await this.run(['read-tree', '--empty']);
    await this.run(['read-tree', commit]);
    // Fails to say that there are changes.
    await this.attempt(['update-index', '-q', '--refresh'], { limitBytes: 64 * 1024 ** 2 });
    await this.#withRights(['reset', '--hard', '--quiet', commit]);
    await this.#withRights(['clean', '-ffdq']);
  }

  /** Folders that their owner may not write to stop git once. */
  async #withRights(args: readonly string[]): Promise<void> {
    if ((await this.attempt(args)).code === 0) return;
    await this.#run(['chmod', '-R', 'u+rwX', '--', '.'], { limitBytes: SHORT_BYTES });
    await this.run(args);
  }
}

export async function requireInCell(
  run: RunInCell,
  argv: readonly [string, ...string[]],
  options: RunInCellOptions = {},
): Promise<Uint8Array> {
  return requireSuccess(argv, await run(argv, { limitBytes: SHORT_BYTES, ...options }));
}

function requireSuccess(argv: readonly string[], { code, stdout, stderr }: RunInCellResult): Uint8Array {
  if (code === 0) return stdout;
  const words = stderr.trim().slice(-1000) || `exit code ${code}`;
  throw new HotcellError('FLEET_GIT', `${argv.slice(0, 2).join(' ')} failed in the cell: ${words}`);
}

function toText(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}
