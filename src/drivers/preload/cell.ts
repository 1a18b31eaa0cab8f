import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CellUsage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import type { Exec, ExecRequest } from '../../core/exec.ts';
import type { Limits } from '../../core/limits.ts';
import { HostCell, type HostCellParts } from '../process/host-cell.ts';
import { Command, startProcess, type Launch, type LaunchedProcess } from './command.ts';
import { signalGroup, startOf } from './process-group.ts';

/** In the folder of a cell: a file per process group, for whoever has to clean up after us. */
export const GROUPS = 'groups';

/** Short commands have ended by then, and nothing is started beside them. */
const SPARE_AFTER_MS = 100;

export interface PlannedCommand {
  readonly launch: Launch;
  /** It may have more processes than one. */
  readonly forks: boolean;
  readonly touched: string | undefined;
}

export interface PreloadCellParts extends HostCellParts {
  /** Holds the workdir and what we note about the cell. */
  readonly directory: string;
  readonly limits: Limits;
  plan(request: ExecRequest): PlannedCommand;
  /** Started before there is a plan for it, so that a command does not wait for it to boot. */
  readonly launcher: Omit<Launch, 'plan'> | undefined;
}

/** A folder of the host, and commands with walls around each of them. */
export class PreloadCell extends HostCell {
  readonly main: Exec | undefined;
  readonly limitMemory = (bytes: number): Promise<void> => {
    this.#memoryBytes = bytes;
    return Promise.resolve();
  };
  readonly #parts: PreloadCellParts;
  readonly #running = new Set<Command>();
  #memoryBytes: number;
  #cpuMs = 0;
  #spare: LaunchedProcess | undefined;

  constructor(parts: PreloadCellParts) {
    super(parts);
    this.#parts = parts;
    this.#memoryBytes = parts.limits.memoryBytes;
    mkdirSync(join(parts.directory, GROUPS));
    this.main = parts.main === undefined ? undefined : this.#start(parts.main, () => void this.dispose());
    if (parts.main === undefined) this.#keepSpare();
  }

  // oxlint-disable-next-line typescript/require-await -- what is thrown while planning must be a rejection
  async exec(request: ExecRequest): Promise<Exec> {
    if (this.isEnding) throw new HotcellError('CELL_LOST', 'the cell has ended');
    return this.#start(request, () => this.#keepSpare());
  }

  #start(request: ExecRequest, onEnd: () => void): Exec {
    const { launch, forks, touched } = this.#parts.plan(request);
    const { workdir, limits } = this.#parts;
    const child = this.#takeSpare(launch) ?? this.#startNoted(launch);
    const command = new Command(child, launch.plan, {
      forks,
      workdir,
      memoryBytes: () => this.#memoryBytes,
      processes: limits.processes,
      diskBytes: limits.diskBytes,
    });
    this.#running.add(command);
    // Some commands only wait, and others come meanwhile.
    setTimeout(() => this.#keepSpare(), SPARE_AFTER_MS).unref();
    void command.ended.then(async () => {
      this.#running.delete(command);
      if (touched !== undefined) rmSync(touched, { force: true });
      this.#cpuMs += (await command.usage()).cpuMs;
      onEnd();
    });
    return command;
  }

  #takeSpare(launch: Launch): LaunchedProcess | undefined {
    const spare = this.#spare;
    this.#spare = undefined;
    const isAlive = spare?.pid !== undefined && spare.exitCode === null && spare.signalCode === null;
    return isAlive && launch.plan !== undefined ? spare : undefined;
  }

  #keepSpare(): void {
    const { launcher } = this.#parts;
    if (launcher === undefined || this.main !== undefined) return;
    if (this.#spare !== undefined || this.isEnding) return;
    this.#spare = this.#startNoted(launcher);
    // A command that takes it hears of its failure, too.
    this.#spare.on('error', () => {});
  }

  /** Notes the group of what it starts as long as there is one. */
  #startNoted(launch: Omit<Launch, 'plan'>): LaunchedProcess {
    const child = startProcess(launch);
    if (child.pid === undefined) return child;
    const note = join(this.#parts.directory, GROUPS, String(child.pid));
    writeFileSync(note, startOf(child.pid) ?? '');
    child.on('close', () => rmSync(note, { force: true }));
    return child;
  }

  usage(): Promise<CellUsage> {
    const running = [...this.#running].flatMap((command) => command.current() ?? []);
    const sum = (pick: (figures: (typeof running)[number]) => number): number =>
      running.reduce((total, figures) => total + pick(figures), 0);
    return Promise.resolve({
      cpuMs: this.#cpuMs + sum(({ cpuMs }) => cpuMs),
      memoryBytes: sum(({ memoryBytes }) => memoryBytes),
      processes: sum(({ processes }) => processes),
    });
  }

  protected async endAll(): Promise<void> {
    const running = [...this.#running];
    await Promise.all(
      running.map(async (command) => {
        await command.kill('cancelled');
        await command.ended;
      }),
    );
    if (this.#spare?.pid !== undefined) signalGroup(this.#spare.pid, 'SIGKILL');
  }
}
