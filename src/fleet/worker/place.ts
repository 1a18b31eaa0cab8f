import { randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cell, CellFolder, CellOwner } from '../../core/cell.ts';
import { HotcellError, messageOf } from '../../core/errors.ts';
import type { ExecRequest } from '../../core/exec.ts';
import { Limits } from '../../core/limits.ts';
import { caVariables } from '../../egress/ca-bundle.ts';
import type { CellNetwork } from '../../egress/cell-network.ts';
import type { HeaderInjection } from '../../egress/header-injection.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { PlaceGit, RunInCell } from '../git/place-git.ts';
import { runInCell, type RunOptions, type RunResult } from './run-in-cell.ts';

const CA_BUNDLE = 'authorities.pem';
/** Git tells of objects and files; a repository with more changes than that in one task is none of an agent's making. */
const GIT_OUTPUT_BYTES = 256 * 1024 * 1024;
const GIT_MS = 10 * 60_000;

export interface PlaceParts {
  readonly site: FleetSite;
  readonly config: FleetConfig;
  readonly git: PlaceGit;
  /** Of the cell. */
  readonly name: string;
  /** Who its programs are on the host; undefined where they are whoever we are. */
  readonly owner: CellOwner | undefined;
  /** What the gate adds to requests. */
  readonly inject: readonly HeaderInjection[];
  /** Variables of everything that runs there. */
  readonly variables: Readonly<Record<string, string>>;
  /** What has to be in the worktree before anything runs there. */
  furnish?(): Promise<void>;
}

/** Where one worker works: a worktree, and a cell around it. */
export class Place implements AsyncDisposable {
  readonly cell: Cell;
  readonly git: PlaceGit;
  readonly #parts: PlaceParts;
  readonly #network: CellNetwork | undefined;
  readonly #ca: boolean;

  private constructor(parts: PlaceParts, cell: Cell, network: CellNetwork | undefined, ca: boolean) {
    this.#parts = parts;
    this.cell = cell;
    this.git = parts.git;
    this.#network = network;
    this.#ca = ca;
  }

  static async open(parts: PlaceParts): Promise<Place> {
    const { site, config, git, owner, inject } = parts;
    await git.prepare(owner);
    await parts.furnish?.();
    const cell = await site.driver.create({
      name: parts.name,
      kind: 'worker',
      limits: toLimits(config),
      folders: [...git.folders, ...site.agentFolders],
      ...(site.image === undefined ? {} : { image: site.image }),
      ...(owner === undefined ? {} : { owner }),
    });
    try {
      const { caBundle } = site;
      if (caBundle !== undefined) await cell.files.write([{ path: CA_BUNDLE, content: caBundle }]);
      const hasNetwork = config.network.allow.length > 0;
      const network = hasNetwork
        ? await site.openNetwork?.(config.network.allow, (request) => cell.exec(request), { inject })
        : undefined;
      await network?.untilReady();
      const place = new Place(parts, cell, network, caBundle !== undefined);
      await place.#makeHome();
      await place.#requireOurFolders();
      return place;
    } catch (error) {
      await cell.dispose();
      throw error;
    }
  }

  async #makeHome(): Promise<void> {
    const { code, stderr } = await this.run({ argv: ['mkdir', '-p', HOME], env: {} });
    if (code !== 0)
      throw new HotcellError('CELL_START_FAILED', `no home in cell ${this.cell.name}: ${stderr}`);
  }

  /**
   * SECURITY: an engine that does not see the folders of this machine would give the cell others of the same name, and git
   * would reset what is in them. A file that was not there before tells.
   */
  async #requireOurFolders(): Promise<void> {
    const own = this.git.folders.find(({ name }) => name === 'git');
    if (own === undefined) return;
    const token = `token-${randomBytes(16).toString('hex')}`;
    const file = join(own.folder, token);
    await writeFile(file, '', { flag: 'wx' });
    try {
      const { code } = await this.run({ argv: ['test', '-e', `{git}/${token}`], env: {}, folder: 'git' });
      if (code === 0) return;
    } finally {
      await rm(file, { force: true });
    }
    throw new HotcellError(
      'POLICY_UNENFORCEABLE',
      `cell ${this.cell.name} does not see the folders of this machine`,
      {
        hint: 'Use an engine on this machine, or the oci driver.',
      },
    );
  }

  /** Runs a program in the worktree. */
  run(request: ExecRequest, options?: RunOptions): Promise<RunResult> {
    return runInCell(
      this.cell,
      { folder: 'workspace', ...request, env: { ...this.#env(), ...request.env } },
      options,
    );
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
      ...this.#network?.variables,
      ...(this.#ca ? caVariables(`{workdir}/${CA_BUNDLE}`) : {}),
      ...this.git.env,
    };
  }

  /**
   * Removes what programs have left in memory: a task that fills it would otherwise leave no room for the next one, and not
   * even for its credentials.
   */
  async tidy(): Promise<void> {
    const ours = [CA_BUNDLE, 'home'].flatMap((name) => ['!', '-path', `{workdir}/${name}`]);
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
    const tooMuch = new AbortController();
    let length = 0;
    const { code, stderr } = await this.run(
      { argv, env: options.env ?? {} },
      {
        ...(options.input === undefined ? {} : { input: options.input }),
        timeoutMs: options.timeoutMs ?? GIT_MS,
        signal: tooMuch.signal,
        graceMs: 0,
        onOutput: (stream, bytes) => {
          if (stream === 'stderr') return;
          length += bytes.length;
          if (length > limit) tooMuch.abort();
          else if (options.onStdout === undefined) pieces.push(bytes.slice());
          else options.onStdout(bytes);
        },
      },
    );
    if (tooMuch.signal.aborted)
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

  async [Symbol.asyncDispose](): Promise<void> {
    this.#network?.close();
    await this.cell.dispose().catch((error: unknown) => {
      this.#parts.site.log.warn({ cell: this.cell.name, error: messageOf(error) }, 'a cell was not removed');
    });
  }
}

/** Of the programs in a cell; in memory, and gone with it. */
export const HOME = '{workdir}/home';

export const WORKSPACE = 'workspace' satisfies CellFolder['name'];

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
