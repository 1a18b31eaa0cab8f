import { randomBytes } from 'node:crypto';
import { posix } from 'node:path';
import { FurnishedCell } from '../cells/furnished-cell.ts';
import type { Cell, CellFile, CellImage, CellSpec } from '../core/cell.ts';
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
interface FoldersInCell {
  readonly code: string;
  readonly packages: string;
}

const CODE_IN_CELL = '/code';
const PACKAGES_IN_CELL = '/packages';
const WORK = 'work';
/** With built-in commands of the shell alone: what the folder's token is, and where the folders are. */
const ASK = 'IFS= read -r token <"$1/$3"; printf "%s\\n" "$token" "$1" "$2"';

/** One cell of a workbench, with its files and its way out. */
export class BenchCell {
  readonly places: FoldersInCell;
  /** The current folder of runs. */
  readonly workFolder: string;
  readonly #furnished: FurnishedCell;
  readonly #parts: BenchCellParts;
  readonly #workspace: Workspace;
  #seen: Snapshot | undefined;
  #laying: Promise<void> | undefined;
  #isLost = false;

  private constructor(furnished: FurnishedCell, parts: BenchCellParts) {
    const { cell, seen, startHelper } = furnished;
    const [code = CODE_IN_CELL, packages = PACKAGES_IN_CELL] = seen;
    this.places = { code, packages };
    this.#furnished = furnished;
    this.#parts = parts;
    this.workFolder = posix.join(cell.workdir, WORK);
    this.#workspace = new Workspace({ exec: startHelper, root: this.workFolder });
    const markLost = (): void => {
      this.#isLost = true;
    };
    cell.gone.then(markLost, markLost);
  }

  static async start(parts: BenchCellParts): Promise<BenchCell> {
    const { site, code, log } = parts;
    const { driver, caBundle } = site;
    const argv = ['sh', '-c', ASK, 'sh', '{code}', '{packages}', code.tokenFile] as const;
    const sight = { ask: { argv, env: {} }, answer: [code.token] };
    const furnished = await FurnishedCell.make({ driver, spec: toSpec(parts), sight, caBundle, log });
    try {
      const made = new BenchCell(furnished, parts);
      // Makes the work folder, too.
      made.#seen = await made.#workspace.snapshot();
      return made;
    } catch (error) {
      await furnished[Symbol.asyncDispose]();
      throw error;
    }
  }

  get cell(): Cell {
    return this.#furnished.cell;
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** Variables of the way out, once it is open. */
  get variables(): Readonly<Record<string, string>> {
    return this.#furnished.variables;
  }

  /** Opened with the first use. SECURITY: without rules it lets nothing through, but says what it was asked for. */
  async network(rules: readonly HttpRule[]): Promise<CellNetwork> {
    const network = await this.#furnished.openNetwork(this.#parts.site.openNetwork, rules);
    await Promise.all([network.untilReady(), (this.#laying ??= this.#furnished.layAuthorities())]);
    return network;
  }

  setRules(rules: readonly HttpRule[]): Promise<void> {
    return this.#furnished.setAllow(rules);
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
    await this.#furnished[Symbol.asyncDispose]();
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
