import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { lineOf, type HostGit } from './host-git.ts';
import { requireCommitId } from './refs.ts';

const HISTORY = 'refs/heads/history';

/**
 * A bare repository with the history of one commit and nothing else of the user's: not the other branches, no
 * configuration, no reflogs. Cells see its objects and cannot change them.
 */
export class BaseStore {
  readonly folder: string;
  /** What cells see. */
  readonly objects: string;
  readonly #git: HostGit;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(git: HostGit, folder: string) {
    this.#git = git;
    this.folder = folder;
    this.objects = join(folder, 'objects');
  }

  /** Afterwards all history of `commit` is there. Only what is missing is copied. */
  bring(commit: string): Promise<void> {
    const turn = this.#turn.then(() => this.#bring(requireCommitId(commit)));
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** The commit that was brought last. */
  async commit(): Promise<string> {
    return requireCommitId(await this.#git.run(['rev-parse', '--verify', HISTORY], this.#here()));
  }

  /** Where the history of a shallow clone ends: git must be told, or it takes the rest for missing. */
  async shallow(): Promise<Buffer | undefined> {
    return readFile(join(this.folder, 'shallow')).catch(() => undefined);
  }

  /** How to call git in this repository with objects that are still on probation in `incoming`. */
  withIncoming(incoming: string): { readonly cwd: string; readonly env: Readonly<Record<string, string>> } {
    const objects = { GIT_OBJECT_DIRECTORY: incoming, GIT_ALTERNATE_OBJECT_DIRECTORIES: this.objects };
    return { cwd: this.folder, env: { GIT_DIR: this.folder, ...objects } };
  }

  /** Precondition: no cell sees it any more. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #bring(commit: string): Promise<void> {
    const known = await this.#git.attempt(['rev-parse', '--verify', '--quiet', HISTORY], this.#here());
    if (known.code === 0 && lineOf(known.stdout) === commit) return;
    await this.#unlock();
    await this.#make();
    // Git moves the ref after all objects are in place, so a fetch that was cut off leaves what was there before.
    await this.#git.run(
      [
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-write-fetch-head',
        '--update-shallow',
        '--refmap=',
        this.#git.commonDir,
        `+${commit}:${HISTORY}`,
      ],
      { ...this.#here(), settings: { 'transfer.fsckObjects': 'false', 'fetch.fsckObjects': 'false' } },
    );
  }

  /** What a killed git has left: nobody else writes here. */
  async #unlock(): Promise<void> {
    const locks = ['HEAD.lock', 'config.lock', 'packed-refs.lock', 'shallow.lock', `${HISTORY}.lock`];
    await Promise.all(locks.map((lock) => rm(join(this.folder, lock), { force: true })));
  }

  /** Git mends what a crash has left half made. */
  async #make(): Promise<void> {
    await mkdir(this.folder, { recursive: true });
    const format = await this.#git.run(['rev-parse', '--show-object-format']);
    await this.#git.run([
      'init',
      '--quiet',
      '--bare',
      '--template=',
      // Cells may have another user than the caller.
      '--shared=0644',
      '--initial-branch=history',
      `--object-format=${format}`,
      this.folder,
    ]);
  }

  #here(): { cwd: string; env: Record<string, string> } {
    return { cwd: this.#git.root, env: { GIT_DIR: this.folder } };
  }
}
