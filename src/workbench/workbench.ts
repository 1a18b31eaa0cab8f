import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { CellFile } from '../core/cell.ts';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import type { Language } from '../core/language.ts';
import { Turns } from '../core/turns.ts';
import type { FsReply } from '../wire/session-files.ts';
import type { CodeRequest, CodeRun, Owner, Snippets, Workbench, WorkbenchFiles } from './api.ts';
import type { BenchCell } from './bench-cell.ts';
import { BenchCells } from './bench-cells.ts';
import { CodeFolder } from './code-folder.ts';
import { readDenials } from './denials.ts';
import { LiveRun } from './live-run.ts';
import type { WorkbenchesOptions } from './options.ts';
import { PermissionTable } from './permission-table.ts';
import { isBun, runCode, unknownLanguage, type RunHost, type RunOrder } from './run-code.ts';
import { WarmBun } from './warm-bun.ts';

export interface LiveWorkbenchParts {
  readonly owner: Owner;
  readonly options: WorkbenchesOptions;
  readonly snippets: Snippets;
  onClosed(workbench: LiveWorkbench): void;
}

/** The helper for files may be gone, or the cell. */
const FILE_ATTEMPTS = 3;
const NOBODY = { onPhase: () => {} };

export class LiveWorkbench implements Workbench {
  /** SECURITY: 128 random bits, because whoever knows it and is the owner may use it. */
  readonly id = `wb_${randomBytes(16).toString('hex')}`;
  readonly owner: Owner;
  readonly permissions: PermissionTable;
  readonly files: WorkbenchFiles;
  readonly #parts: LiveWorkbenchParts;
  readonly #cells: BenchCells;
  readonly #turns = new Turns();
  readonly #warm: WarmBun;
  readonly #runs = new Map<string, LiveRun>();
  #folder: Promise<CodeFolder> | undefined;
  #touchedAt: number;
  /** Calls that are under way. */
  #busy = 0;
  #ended: HotcellError | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: LiveWorkbenchParts) {
    this.#parts = parts;
    this.owner = parts.owner;
    const { options } = parts;
    const { settings, log } = options;
    this.#touchedAt = options.clock.now();
    this.#warm = new WarmBun({ warmMs: settings.warmMs, clock: options.clock });
    this.#cells = new BenchCells({
      site: () => options.site(),
      code: () => this.#codeFolder(),
      limits: settings.limits,
      readBytes: settings.readBytes,
      log,
    });
    this.permissions = new PermissionTable({
      settings,
      mode: options.mode,
      values: options.values,
      onHttpChange: () => this.#cells.setRules(this.permissions.httpRules()),
    });
    this.files = {
      read: (path) => this.#withCell((cell): Promise<FsReply> => cell.read(path)),
      write: (files) => this.#withCell((cell) => this.#write(cell, files)),
    };
  }

  run(request: CodeRequest): CodeRun {
    this.#requireOpen();
    const { clock, settings } = this.#parts.options;
    const order = this.#toOrder(request);
    const { isBusy, waiting } = this.#turns;
    if (isBusy && waiting >= settings.queue)
      throw new HotcellError('TOO_BUSY', `${waiting} runs wait in this session already`, {
        hint: 'Wait for one of them to end, or cancel it.',
      });
    // Elsewhere everything on stderr is the code's own.
    const saysDenials = this.#parts.options.mode !== 'container' && isBun(order.language);
    const run = new LiveRun({
      id: `run_${randomBytes(8).toString('hex')}`,
      language: request.language,
      startedAt: clock.now(),
      keptBytes: settings.outputKeptBytes,
      cleanStderr: (text) => (saysDenials ? readDenials(text).stderr : text),
    });
    this.#keep(run);
    void this.#attend(run, order);
    return run;
  }

  #toOrder(request: CodeRequest): RunOrder {
    const { settings } = this.#parts.options;
    const { timeoutMs } = request;
    if (timeoutMs !== undefined && timeoutMs > settings.longestTimeMs) {
      const message = `timeout_ms: at most ${settings.longestTimeMs} here, got ${timeoutMs}`;
      throw new HotcellError('LIMIT_TOO_HIGH', message, { field: 'timeout_ms' });
    }
    const limits = { ...settings.limits, wallTimeMs: timeoutMs ?? settings.limits.wallTimeMs };
    return { request, language: this.#requireLanguage(request.language), limits };
  }

  #requireLanguage(name: string): Language {
    const { languages } = this.#parts.options;
    const language = Object.hasOwn(languages, name) ? languages[name] : undefined;
    if (language === undefined) throw unknownLanguage(name, Object.keys(languages));
    return language;
  }

  /** One after the other: they share the folder with the code, and the files. */
  async #attend(run: LiveRun, order: RunOrder): Promise<void> {
    const host: RunHost = {
      owner: this.owner,
      options: this.#parts.options,
      permissions: this.permissions,
      cells: this.#cells,
      warm: this.#warm,
      snippets: this.#parts.snippets,
      code: () => this.#codeFolder(),
      turns: this.#turns,
    };
    this.#busy++;
    const result = await runCode(run, order, host);
    this.#busy--;
    this.touch();
    const { status, durationMs, cellId: cell } = result;
    this.#parts.options.log.info(
      { run: run.id, language: run.language, status, durationMs: Math.round(durationMs), cell },
      'run ended',
    );
    run.end(result);
    // After the answer: nobody waits for it.
    setImmediate(() => this.#refill());
  }

  #refill(): void {
    if (!this.#turns.isBusy) this.#warm.refill();
  }

  /** Ends what has waited too long for a run. */
  sweep(): void {
    this.#warm.sweep();
  }

  /** What waits may have read a file already. */
  async #write(cell: BenchCell, files: readonly CellFile[]): Promise<void> {
    await cell.write(files);
    await this.#warm.discard();
  }

  /** The oldest that have ended are forgotten first. */
  #keep(run: LiveRun): void {
    this.#runs.set(run.id, run);
    const ended = [...this.#runs.values()].filter(({ phase }) => phase === 'ended');
    const surplus = ended.length - this.#parts.options.settings.runsKept;
    for (const { id } of ended.slice(0, Math.max(0, surplus))) this.#runs.delete(id);
  }

  findRun(id: string): CodeRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new HotcellError(
      'RUN_UNKNOWN',
      `there is no run ${JSON.stringify(id.slice(0, 64))} in this session`,
    );
  }

  runs(): readonly CodeRun[] {
    return [...this.#runs.values()];
  }

  touch(): void {
    this.#touchedAt = this.#parts.options.clock.now();
  }

  expiresAt(): number {
    const { clock, settings } = this.#parts.options;
    return (this.#busy > 0 ? clock.now() : this.#touchedAt) + settings.idleMs;
  }

  close(): Promise<void> {
    return this.end(new HotcellError('WORKBENCH_UNKNOWN', 'the session was closed'));
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Callers that still hold the workbench get this error from now on. */
  end(reason: HotcellError): Promise<void> {
    this.#ended ??= reason;
    this.#closing ??= this.#clear(this.#ended);
    return this.#closing;
  }

  async #clear(reason: HotcellError): Promise<void> {
    for (const run of this.#runs.values()) run.abort(reason);
    await Promise.all([...this.#runs.values()].map((run) => run.result));
    await this.#warm.close();
    await this.#cells.close();
    const folder = await this.#folder?.catch(() => undefined);
    await folder?.remove();
    this.#parts.onClosed(this);
  }

  #requireOpen(): void {
    if (this.#ended !== undefined) throw this.#ended;
    this.touch();
  }

  async #withCell<T>(work: (cell: BenchCell) => Promise<T>): Promise<T> {
    this.#requireOpen();
    this.#busy++;
    try {
      for (let attempt = 1; ; attempt++) {
        const cell = await this.#cells.get('latest', NOBODY);
        try {
          return await work(cell);
        } catch (error) {
          if (toHotcellError(error).code !== 'CELL_LOST' || attempt === FILE_ATTEMPTS) throw error;
          // The first time it may only be the helper in the cell that is gone.
          if (cell.isLost || attempt > 1) this.#cells.discard(cell);
        }
      }
    } finally {
      this.#busy--;
      this.touch();
    }
  }

  #codeFolder(): Promise<CodeFolder> {
    const { folder } = this.#parts.options;
    this.#folder ??= CodeFolder.make(join(folder, randomBytes(16).toString('hex')));
    return this.#folder;
  }
}
