import { runToEnd } from '../cells/run-to-end.ts';
import { requireFreezer } from '../core/capabilities.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { ExecTable } from './exec-table.ts';
import type { SessionParts } from './session.ts';

type LifeParts = Pick<SessionParts, 'id' | 'facts' | 'cell' | 'cwd' | 'touchedAt' | 'pausedAt' | 'host'>;

const HEARD_MS = 5_000;

/** What changes about a session while it lives. */
export class SessionLife {
  readonly #parts: LifeParts;
  #cwd: string;
  #touchedAt: number;
  #storedTouch: number;
  #pausedAt: number | undefined;
  #ended: HotcellError | undefined;
  /** Freezing or thawing: one after the other. */
  #changing: Promise<unknown> = Promise.resolve();

  constructor(parts: LifeParts) {
    this.#parts = parts;
    this.#cwd = parts.cwd;
    this.#touchedAt = parts.touchedAt;
    this.#storedTouch = parts.touchedAt;
    this.#pausedAt = parts.pausedAt;
  }

  #now(): number {
    return this.#parts.host.options.clock.now();
  }

  get cwd(): string {
    return this.#cwd;
  }

  setCwd(cwd: string): void {
    const { id, host } = this.#parts;
    this.#cwd = cwd;
    try {
      host.store.sessions.setCwd(id, cwd);
    } catch (error) {
      // The next command begins there all the same; only a restart would not know.
      const session = toSessionMark(id);
      host.options.log.error({ session, error: messageOf(error) }, 'session folder not stored');
    }
  }

  /** A sign of life. */
  touch(): void {
    this.#touchedAt = this.#now();
  }

  /** Written down now and then only: a crash may take some seconds from the life of a session, and no more. */
  storeTouch(): void {
    if (this.#storedTouch === this.#touchedAt) return;
    this.#storedTouch = this.#touchedAt;
    this.#parts.host.store.sessions.touch(this.#parts.id, this.#touchedAt);
  }

  /** Commands that run count as life, and so do people who look at a terminal; a terminal alone does not. */
  expiresAt(table: ExecTable): number {
    const isBusy =
      !this.isPaused && table.living().some((exec) => exec.identity.kind !== 'terminal' || exec.isWatched);
    return (isBusy ? this.#now() : this.#touchedAt) + this.#parts.facts.ttlMs;
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** Freezes the cell; the time of commands stands still. False: it was paused already. */
  pause(table: ExecTable): Promise<boolean> {
    return this.#change(async () => {
      if (this.isPaused) return false;
      const { cell, host, id } = this.#parts;
      const freezer = requireFreezer(cell);
      // Written down first: from here on the cell keeps no time, and a crash must not hide that.
      host.store.sessions.setPaused(id, this.#now());
      try {
        await this.#takeBackDeadlines(table);
        await freezer.freeze();
      } catch (error) {
        this.#stayAwake(table);
        throw error;
      }
      this.#pausedAt = this.#now();
      for (const exec of table.living()) exec.stopClock();
      return true;
    });
  }

  /** It could not be frozen. One that has ended meanwhile keeps its end. */
  #stayAwake(table: ExecTable): void {
    if (this.isOver) return;
    const { id, host } = this.#parts;
    host.store.sessions.setPaused(id, undefined);
    for (const exec of table.living()) exec.tellCell();
    this.tellCell(table);
  }

  resume(table: ExecTable): Promise<boolean> {
    return this.#change(async () => {
      if (this.#pausedAt === undefined) return false;
      const { cell, id, host } = this.#parts;
      const { store } = host;
      await requireFreezer(cell).thaw();
      const pausedFor = this.#now() - this.#pausedAt;
      this.#pausedAt = undefined;
      store.atomically(() => {
        store.sessions.setPaused(id, undefined);
        for (const exec of table.living()) {
          const deadline = exec.postpone(pausedFor);
          if (deadline !== undefined) store.execs.setDeadline(exec.id, deadline);
        }
      });
      for (const exec of table.living()) {
        if (exec.state !== 'running') continue;
        exec.startClock();
        exec.tellCell();
      }
      this.tellCell(table);
      return true;
    });
  }

  /**
   * The cell ends by itself when no server has ended it by then: after the session would have ended, and after the commands
   * that run now would have.
   */
  tellCell(table: ExecTable): void {
    if (this.isPaused || this.isOver) return;
    this.#parts.cell.lasting?.endAfter({
      afterMs: Math.max(0, this.cellEndsAt(table) - this.#now()),
      graceMs: 0,
    });
  }

  /** When the cell is gone if no server comes, unless it is paused: then it has no end of its own. */
  cellEndsAt(table: ExecTable): number {
    const { facts, host } = this.#parts;
    const last = Math.max(0, ...table.living().map(({ deadlineAt = 0 }) => deadlineAt));
    return Math.max(this.expiresAt(table), last + facts.ttlMs) + host.options.settings.abandonedMs;
  }

  /** A cell that thaws must not find that its time was over long ago. Resolves when the cell has heard of it. */
  async #takeBackDeadlines(table: ExecTable): Promise<void> {
    const { cell } = this.#parts;
    for (const exec of table.living()) exec.tellCell(true);
    cell.lasting?.endAfter(undefined);
    // Frames are taken in order. A cell without room for one more process has heard of it all the same by then.
    await runToEnd(cell, { argv: ['true'], env: {} }, { timeMs: HEARD_MS }).catch(() => {});
  }

  #change(work: () => Promise<boolean>): Promise<boolean> {
    const done = this.#changing.then(() => {
      this.requireLiving();
      return work();
    });
    this.#changing = done.catch(() => {});
    return done;
  }

  get isOver(): boolean {
    return this.#ended !== undefined;
  }

  /** Everybody who comes from now on gets this error. */
  end(error: HotcellError): void {
    this.#ended = error;
  }

  requireLiving(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  /** What is frozen hears nothing. */
  requireAwake(): void {
    this.requireLiving();
    if (this.isPaused) throw new HotcellError('SESSION_PAUSED', 'the session is paused');
  }
}
