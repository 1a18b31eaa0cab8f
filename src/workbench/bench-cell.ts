import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import type { Cell, CellFile, CellImage, CellSpec } from '../core/cell.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import type { Exec, ExecRequest } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { Log } from '../core/log.ts';
import type { CellNetwork, HttpRule } from '../egress/cell-network.ts';
import type { FsReply } from '../wire/session-files.ts';
import { diffSnapshots, type Snapshot } from '../workspace/snapshot.ts';
import { Workspace } from '../workspace/workspace.ts';
import type { CodeResult } from './api.ts';
import type { CodeFolder } from './code-folder.ts';
import type { WorkbenchSite } from './options.ts';

export interface BenchCellParts {
  readonly site: WorkbenchSite;
  readonly code: CodeFolder;
  readonly limits: Limits;
  readonly image: CellImage;
  /** Largest file that is read. */
  readonly readBytes: number;
  readonly log: Log;
}

/** Where programs of the cell see the folders of the host. */
interface Places {
  readonly code: string;
  readonly packages: string;
}

const CODE_IN_CELL = '/code';
const PACKAGES_IN_CELL = '/packages';
const WORK = 'work';
const WORDS_KEPT = 16 * 1024;
/** With built-in commands of the shell alone: what the folder's token is, and where the folders are. */
const ASK = 'IFS= read -r token <"$1/$3"; printf "%s\\n" "$token" "$1" "$2"';

/** One cell of a workbench, with its files and its way out. */
export class BenchCell {
  readonly cell: Cell;
  readonly places: Places;
  /** The current folder of runs. */
  readonly workFolder: string;
  readonly #parts: BenchCellParts;
  readonly #workspace: Workspace;
  #seen: Snapshot | undefined;
  #network: Promise<CellNetwork> | undefined;
  #isLost = false;

  private constructor(cell: Cell, places: Places, parts: BenchCellParts) {
    this.cell = cell;
    this.places = places;
    this.#parts = parts;
    this.workFolder = posix.join(cell.workdir, WORK);
    this.#workspace = new Workspace({
      exec: (request) => this.startHelper(request),
      root: this.workFolder,
    });
    const markLost = (): void => {
      this.#isLost = true;
      void this.#closeNetwork();
    };
    cell.gone.then(markLost, markLost);
  }

  static async start(parts: BenchCellParts): Promise<BenchCell> {
    const cell = await parts.site.driver.create(toSpec(parts));
    try {
      const made = new BenchCell(cell, await requirePlaces(cell, parts.code), parts);
      // Makes the work folder, too.
      made.#seen = await made.#workspace.snapshot();
      return made;
    } catch (error) {
      await dispose(cell, parts.log);
      throw error;
    }
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** A command of ours beside those of users. */
  async startHelper(request: ExecRequest): Promise<Exec> {
    const exec = await this.cell.exec(request);
    void exec.ended.then(() => exec.forget());
    return exec;
  }

  /** Opened with the first use. SECURITY: without rules it lets nothing through, but says what it was asked for. */
  async network(rules: readonly HttpRule[]): Promise<CellNetwork> {
    const { openNetwork } = this.#parts.site;
    const opening = (this.#network ??= openNetwork(rules, (request) => this.startHelper(request)));
    try {
      const network = await opening;
      await network.untilReady();
      return network;
    } catch (error) {
      if (this.#network === opening) this.#network = undefined;
      throw error;
    }
  }

  async setRules(rules: readonly HttpRule[]): Promise<void> {
    (await this.#network)?.setAllow(rules);
  }

  read(path: string): Promise<FsReply> {
    return this.#workspace.read(path, this.#parts.readBytes);
  }

  async write(files: readonly CellFile[]): Promise<void> {
    await this.#workspace.write(files);
    // What comes from outside is no change of the next run.
    this.#seen = await this.#workspace.snapshot();
  }

  /** What was made or changed in the work folder since the last look. */
  async changedFiles(): Promise<CodeResult['filesChanged']> {
    const before = this.#seen;
    const now = await this.#workspace.snapshot();
    this.#seen = now;
    if (before === undefined) return [];
    return diffSnapshots(before, now)
      .filter(({ change }) => change !== 'deleted')
      .map(({ path, size }) => ({ path, sizeBytes: size }));
  }

  /** Removes every trace. May be called twice. */
  async dispose(): Promise<void> {
    this.#isLost = true;
    await this.#closeNetwork();
    await dispose(this.cell, this.#parts.log);
  }

  async #closeNetwork(): Promise<void> {
    const network = await this.#network?.catch(() => undefined);
    network?.close();
  }
}

function toSpec({ site, code, limits, image }: BenchCellParts): CellSpec {
  return {
    name: `workbench-${randomBytes(2).toString('hex')}`,
    kind: 'session',
    limits,
    image,
    folders: [
      { name: 'code', folder: code.path, at: CODE_IN_CELL },
      { name: 'packages', folder: site.packages.folder, at: PACKAGES_IN_CELL },
    ],
  };
}

/** An engine on another machine, or with mounts of its own, would give the cell some other folder of the same name. */
async function requirePlaces(cell: Cell, code: CodeFolder): Promise<Places> {
  const exec = await cell.exec({
    argv: ['sh', '-c', ASK, 'sh', '{code}', '{packages}', code.tokenFile],
    env: {},
  });
  exec.closeStdin();
  let words = '';
  for await (const event of exec.events) {
    if (event.type === 'stdout') words = (words + Buffer.from(event.bytes).toString()).slice(0, WORDS_KEPT);
  }
  exec.forget();
  const [token, codePlace, packagesPlace] = words.split('\n');
  if (token === code.token && codePlace !== undefined && packagesPlace !== undefined)
    return { code: codePlace, packages: packagesPlace };
  throw new HotcellError(
    'POLICY_UNENFORCEABLE',
    'the cell does not see the folder with the code: the engine does not see the folders of this machine',
    { hint: 'Use an engine on this machine, or the oci driver.' },
  );
}

async function dispose(cell: Cell, log: Log): Promise<void> {
  try {
    await cell.dispose();
  } catch (error) {
    log.error({ cell: cell.id, error: messageOf(error) }, 'a cell cannot be removed');
  }
}
