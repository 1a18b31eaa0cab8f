import type { Cell, CellSpec } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import type { Exec, ExecRequest } from '../core/exec.ts';
import type { Log } from '../core/log.ts';
import { caVariables } from '../egress/ca-bundle.ts';
import type { Allowed, CellNetwork, NetworkOptions, OpenNetwork } from '../egress/cell-network.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { CellFiles } from './cell-files.ts';
import { readOutcome } from './read-outcome.ts';
import { requireSight, type Sight } from './require-sight.ts';
import { runToEnd, type ExitEvent, type RunOptions } from './run-to-end.ts';

/** Beside the workdir's other files; see `CellParts.caPath`. */
export const CA_FILE = '.ca-certificates.crt';

export interface CellParts {
  readonly log: Log;
  /** Authorities that programs trust once there is a way out, in PEM; undefined: those that the cell has anyway. */
  readonly caBundle?: Uint8Array | undefined;
  /** Where the cell sees them; in the workdir unless given. */
  readonly caPath?: string;
}

export interface Furnishing extends CellParts {
  readonly driver: Pick<Driver, 'create'>;
  readonly spec: CellSpec;
  readonly sight?: Sight | undefined;
}

/** Makes the folder, too. */
const LAY = 'mkdir -p -- "${1%/*}" && exec cat >"$1"';
const WORDS_KEPT = 1024;
const LAY_MS = 60_000;

/**
 * A cell with what use cases need around it: its files, commands of ours beside those of users, a way out with the
 * authorities to trust on it, and an end that leaves nothing.
 */
export class FurnishedCell implements AsyncDisposable {
  readonly cell: Cell;
  readonly files: CellFiles;
  /** What the cell said beyond what `sight` wanted. */
  seen: readonly string[] = [];
  readonly #parts: CellParts;
  #helpers: { start(request: ExecRequest): Promise<Exec> } | undefined;
  #network: Promise<CellNetwork> | undefined;
  #variables: Readonly<Record<string, string>> = {};

  /** Around a cell that is there. */
  constructor(cell: Cell, parts: CellParts) {
    this.cell = cell;
    this.#parts = parts;
    this.files = new CellFiles(cell);
    const close = (): void => void this.closeNetwork();
    cell.gone.then(close, close);
  }

  /** Makes the cell. Nothing is left of it when that fails. */
  static async make({ driver, spec, sight, ...parts }: Furnishing): Promise<FurnishedCell> {
    const made = new FurnishedCell(await driver.create(spec), parts);
    try {
      if (sight !== undefined) made.seen = await requireSight(made.cell, sight);
      return made;
    } catch (error) {
      await made[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** What tells programs of the way out and of the authorities on it; nothing before there is one. */
  get variables(): Readonly<Record<string, string>> {
    return this.#variables;
  }

  /** From here on this one starts commands of ours. */
  helpBy(helpers: { start(request: ExecRequest): Promise<Exec> }): void {
    this.#helpers = helpers;
  }

  /** A command of ours beside those of users; unless somebody keeps account of them it is forgotten when it ends. */
  readonly startHelper = async (request: ExecRequest): Promise<Exec> => {
    if (this.#helpers !== undefined) return this.#helpers.start(request);
    const exec = await this.cell.exec(request);
    void exec.ended.then(() => exec.lasting?.forget());
    return exec;
  };

  run(request: ExecRequest, options?: RunOptions): Promise<ExitEvent> {
    return runToEnd(this.cell, request, options);
  }

  /**
   * Opens the way out, once; who comes later gets the same. SECURITY: with nothing allowed it lets nothing through, but says
   * what it was asked for.
   */
  async openNetwork(
    open: OpenNetwork,
    allow: readonly Allowed[],
    options?: NetworkOptions,
  ): Promise<CellNetwork> {
    const opening = (this.#network ??= this.#open(() => open(allow, this.startHelper, options)));
    try {
      return await opening;
    } catch (error) {
      if (this.#network === opening) this.#network = undefined;
      throw error;
    }
  }

  async #open(open: () => Promise<CellNetwork>): Promise<CellNetwork> {
    const network = await open();
    const trust = this.#parts.caBundle === undefined ? {} : caVariables(this.#caPath);
    this.#variables = { ...network.variables, ...trust };
    return network;
  }

  get #caPath(): string {
    return this.#parts.caPath ?? `{workdir}/${CA_FILE}`;
  }

  /** Lays down the authorities that `variables` speak of. */
  async layAuthorities(): Promise<void> {
    const { caBundle } = this.#parts;
    if (caBundle === undefined) return;
    const words = new CappedBytes(WORDS_KEPT);
    const { outcome } = await runToEnd(
      { exec: this.startHelper },
      { argv: ['sh', '-c', LAY, 'sh', this.#caPath], env: {} },
      { input: caBundle, timeMs: LAY_MS, stderr: words },
    );
    if (!readOutcome(outcome).ok)
      throw new HotcellError(
        'CELL_START_FAILED',
        `no authorities in cell ${this.cell.name}: ${words.text().trim()}`,
      );
  }

  async setAllow(allow: readonly Allowed[]): Promise<void> {
    (await this.#network)?.setAllow(allow);
  }

  async closeNetwork(): Promise<void> {
    const network = await this.#network?.catch(() => undefined);
    network?.close();
  }

  /** Removes every trace. May be called twice. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.closeNetwork();
    await this.cell.dispose().catch((error: unknown) => {
      this.#parts.log.error({ cell: this.cell.id, error: messageOf(error) }, 'cell removal failed');
    });
  }
}
