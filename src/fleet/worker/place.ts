import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CA_FILE, FurnishedCell } from '../../cells/furnished-cell.ts';
import type { Sight } from '../../cells/require-sight.ts';
import type { Cell, CellFolder, CellOwner, CellSpec } from '../../core/cell.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { Limits } from '../../core/limits.ts';
import type { CellNetwork } from '../../egress/cell-network.ts';
import type { HeaderInjection } from '../../egress/header-injection.ts';
import type { KnownSecrets } from '../environment/known-secrets.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { RunInCell } from '../git/cell-git.ts';
import type { PlaceGit } from '../git/place-git.ts';
import type { Room } from '../worktree-volumes.ts';
import { adviseOnSpace, awaitOvergrowth, explainNoSpace, findOvergrowth } from './disk-watch.ts';
import { runInCell, type RunOptions, type RunResult } from './run-in-cell.ts';

/** Git tells of objects and files; a repository with more changes than that in one task is none of an agent's making. */
const GIT_OUTPUT_BYTES = 256 * 1024 * 1024;
const GIT_MS = 10 * 60_000;

export interface PlaceParts {
  readonly site: FleetSite;
  readonly config: FleetConfig;
  readonly git: PlaceGit;
  /** Of the worktree; undefined: nothing but a look now and then bounds it. */
  readonly room?: Room | undefined;
  /** Of the cell. */
  readonly name: string;
  /** Who its programs are on the host; undefined where they are whoever we are. */
  readonly owner: CellOwner | undefined;
  /** What the gate adds to requests. */
  readonly inject: readonly HeaderInjection[];
  /** What is taken out of everything that programs print there. */
  readonly secrets: KnownSecrets;
  /** Variables of everything that runs there. */
  readonly variables: Readonly<Record<string, string>>;
  /** What has to be in the worktree before anything runs there. */
  furnish?(): Promise<void>;
}

/** Where one worker works: a worktree, and a cell around it. */
export class Place implements AsyncDisposable {
  readonly git: PlaceGit;
  readonly #furnished: FurnishedCell;
  readonly #parts: PlaceParts;
  readonly #network: CellNetwork | undefined;
  readonly #closing = new AbortController();
  #overgrowth: HotcellError | undefined;

  private constructor(parts: PlaceParts, furnished: FurnishedCell, network: CellNetwork | undefined) {
    this.#parts = parts;
    this.#furnished = furnished;
    this.git = parts.git;
    this.#network = network;
    this.#watchDisk().catch((error: unknown) =>
      parts.site.log.warn({ cell: this.cell.name, error: messageOf(error) }, 'cell end failed'),
    );
  }

  /** SECURITY: the cell ends at once: asked to end, it would go on writing. */
  async #watchDisk(): Promise<void> {
    const end = (): void => this.#closing.abort();
    void this.cell.gone.then(end, end);
    await this.#endIf(await awaitOvergrowth(this.#parts, this.#closing.signal));
  }

  async #endIf(overgrowth: HotcellError | undefined): Promise<void> {
    if (overgrowth === undefined) return;
    this.#overgrowth = overgrowth;
    await this[Symbol.asyncDispose]();
  }

  /** Why the cell was ended from here. */
  get problem(): string | undefined {
    return this.#overgrowth?.message;
  }

  static async open(parts: PlaceParts): Promise<Place> {
    const { site, git, owner } = parts;
    try {
      await git.prepare(owner);
      await parts.furnish?.();
    } catch (error) {
      throw explainNoSpace(parts, error);
    }
    const overgrowth = await findOvergrowth(parts);
    if (overgrowth !== undefined) throw overgrowth;
    await using proof = await makeProof(git.folders);
    const furnished = await FurnishedCell.make({
      driver: site.driver,
      spec: toSpec(parts),
      caBundle: site.caBundle,
      log: site.log,
      sight: proof?.sight,
    });
    try {
      const place = new Place(parts, furnished, await openNetwork(furnished, parts));
      await place.#makeHome();
      return place;
    } catch (error) {
      await furnished[Symbol.asyncDispose]();
      throw error;
    }
  }

  get cell(): Cell {
    return this.#furnished.cell;
  }

  async #makeHome(): Promise<void> {
    const { code, stderr } = await this.run({ argv: ['mkdir', '-p', HOME], env: {} });
    if (code !== 0)
      throw new HotcellError('CELL_START_FAILED', `no home in cell ${this.cell.name}: ${stderr}`);
  }

  get secrets(): KnownSecrets {
    return this.#parts.secrets;
  }

  /** Runs a program in the worktree. Throws WORKTREE_TOO_LARGE when the cell was ended for that. */
  run(request: ExecRequest, options?: RunOptions): Promise<RunResult> {
    return this.#run(request, { ...options, makeRedactor: () => this.secrets.redactor() });
  }

  async #run(request: ExecRequest, options: RunOptions): Promise<RunResult> {
    const env = { ...this.#env(), ...request.env };
    try {
      return await runInCell(this.cell, { folder: 'workspace', ...request, env }, options);
    } finally {
      // Not every driver says of a program that was killed with its cell that it was lost.
      this.#requireNoOvergrowth();
    }
  }

  /** Throws WORKTREE_TOO_LARGE if a failure may be for want of room, or says more about it. */
  async explainFailure(words: string): Promise<string> {
    const full = this.#parts.room === undefined ? undefined : await findOvergrowth(this.#parts);
    if (full !== undefined) throw full;
    return adviseOnSpace(this.#parts, words);
  }

  #requireNoOvergrowth(): void {
    if (this.#overgrowth !== undefined) throw this.#overgrowth;
  }

  #env(): Record<string, string> {
    return {
      HOME,
      // On docker its number has no name.
      USER: 'worker',
      LOGNAME: 'worker',
      LANG: 'C.UTF-8',
      GIT_TERMINAL_PROMPT: '0',
      ...this.#parts.variables,
      ...this.#furnished.variables,
      ...this.git.env,
    };
  }

  /** After a task: the next one must not pay for what this one has left. A worktree that is too large ends the cell. */
  async tidy(): Promise<void> {
    await this.#emptyMemory().catch((error: unknown) => {
      // What the task has done is done.
      if (error !== this.#overgrowth) throw error;
    });
    await this.#endIf(await findOvergrowth(this.#parts));
  }

  /** A task that fills it would otherwise leave no room for the next one, and not even for its credentials. */
  async #emptyMemory(): Promise<void> {
    const ours = [CA_FILE, 'home'].flatMap((name) => ['!', '-path', `{workdir}/${name}`]);
    const request = {
      argv: ['find', '{workdir}', '-mindepth', '1', '-depth', ...ours, '-delete'] as const,
      env: {},
    };
    if ((await this.run(request)).code === 0) return;
    // Folders that their owner may not write to.
    await this.run({ argv: ['chmod', '-R', 'u+rwX', '--', '{workdir}'], env: {} });
    await this.run(request);
  }

  /** For git: everything that it prints, byte by byte. */
  readonly runGit: RunInCell = async (argv, options = {}) => {
    const limit = options.limitBytes ?? GIT_OUTPUT_BYTES;
    const pieces: Uint8Array[] = [];
    let room = limit;
    // Byte by byte: what is kept of it is masked where it is kept.
    const { reason, code, stderr } = await this.#run(
      { argv, env: options.env ?? {} },
      {
        ...(options.input === undefined ? {} : { input: options.input }),
        timeMs: options.timeoutMs ?? GIT_MS,
        outputBytes: limit,
        onOutput: (stream, bytes) => {
          if (stream === 'stderr' || (room -= bytes.length) < 0) return;
          if (options.onStdout === undefined) pieces.push(bytes.slice());
          else options.onStdout(bytes);
        },
      },
    );
    if (reason === 'output' || room < 0)
      throw new HotcellError(
        'FILE_TOO_LARGE',
        `git in cell ${this.cell.name} printed more than ${limit} bytes`,
      );
    return { code, stdout: Buffer.concat(pieces), stderr };
  };

  /** What programs of the cell wanted of the network and did not get, since this mark. */
  refusalsSince(mark: number): string[] {
    return (this.#network?.refusalsSince(mark) ?? []).map(({ host, reason }) => `${host}: ${reason}`);
  }

  mark(): number {
    return this.#network?.mark() ?? 0;
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    return this.#furnished[Symbol.asyncDispose]();
  }
}

function toSpec({ site, config, git, owner, name }: PlaceParts): CellSpec {
  return {
    name,
    kind: 'worker',
    limits: toLimits(config),
    folders: [...git.folders, ...site.agentFolders],
    ...(site.image === undefined ? {} : { image: site.image }),
    ...(owner === undefined ? {} : { owner }),
  };
}

async function openNetwork(
  furnished: FurnishedCell,
  { site, config, inject }: PlaceParts,
): Promise<CellNetwork | undefined> {
  const { allow } = config.network;
  if (allow.length === 0 || site.openNetwork === undefined) return undefined;
  await furnished.layAuthorities();
  const network = await furnished.openNetwork(site.openNetwork, allow, { inject });
  await network.untilReady();
  return network;
}

/** A file that was not there before: git would reset what is in folders that are not ours. */
async function makeProof(
  folders: readonly CellFolder[],
): Promise<(AsyncDisposable & { readonly sight: Sight }) | undefined> {
  const own = folders.find(({ name }) => name === 'git');
  if (own === undefined) return undefined;
  const token = `token-${randomBytes(16).toString('hex')}`;
  const file = join(own.folder, token);
  await writeFile(file, token, { flag: 'wx', mode: 0o644 });
  const ask = { argv: ['cat', `{git}/${token}`] as const, env: {}, folder: 'git' };
  return {
    sight: { ask, answer: [token] },
    [Symbol.asyncDispose]: () => rm(file, { force: true }),
  };
}

/** Of the programs in a cell; in memory, and gone with it. */
const HOME = '{workdir}/home';

function toLimits({ resources, workers }: FleetConfig): Limits {
  return Limits.parse({
    cpus: resources.container_cpu_limit,
    memoryBytes: resources.container_memory_limit,
    processes: resources.container_processes,
    diskBytes: resources.container_tmp,
    openFiles: resources.container_open_files,
    wallTimeMs: Math.round(workers.timeout_minutes * 60_000),
  });
}
