import { runToEnd } from '../cells/run-to-end.ts';
import { requireFreezer } from '../core/capabilities.ts';
import type { Clock } from '../core/clock.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { BegunSession } from './new-session.ts';
import type { ExecTable } from './exec-table.ts';
import type { SessionStore } from './session-store.ts';

interface LifeParts extends Pick<BegunSession, 'id' | 'cell' | 'cwd' | 'touchedAt' | 'pausedAt'> {
  readonly ttlMs: number;
  /** So much later than the session the cell ends by itself. */
  readonly abandonedMs: number;
  readonly clock: Clock;
  readonly store: SessionStore;
  readonly log: Log;
}

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

  get cwd(): string {
    return this.#cwd;
  }

  setCwd(cwd: string): void {
    const { id, log, store } = this.#parts;
    this.#cwd = cwd;
    try {
      store.sessions.setCwd(id, cwd);
    } catch (error) {
      // The next command begins there all the same; only a restart would not know.
      log.error({ session: toSessionMark(id), error: messageOf(error) }, 'session folder not stored');
    }
  }

  /** A sign of life. */
  touch(): void {
    this.#touchedAt = this.#parts.clock.now();
  }

  /** Written down now and then only: a crash may take some seconds from the life of a session, and no more. */
  storeTouch(): void {
    if (this.#storedTouch === this.#touchedAt) return;
    this.#storedTouch = this.#touchedAt;
    this.#parts.store.sessions.touch(this.#parts.id, this.#touchedAt);
  }

  /** Commands that run count as life, and so do people who look at a terminal; a terminal alone does not. */
  expiresAt(table: ExecTable): number {
    const { clock, ttlMs } = this.#parts;
    const isBusy =
      !this.isPaused && table.living().some((exec) => exec.identity.kind !== 'terminal' || exec.isWatched);
    return (isBusy ? clock.now() : this.#touchedAt) + ttlMs;
  }

  get isPaused(): boolean {
    return this.#pausedAt !== undefined;
  }

  /** Freezes the cell; the time of commands stands still. False: it was paused already. */
  pause(table: ExecTable): Promise<boolean> {
    return this.#change(async () => {
      if (this.isPaused) return false;
      const { cell, clock, id, store } = this.#parts;
      const freezer = requireFreezer(cell);
      await this.#takeBackDeadlines(table);
      await freezer.freeze();
      this.#pausedAt = clock.now();
      for (const exec of table.living()) exec.stopClock();
      store.sessions.setPaused(id, this.#pausedAt);
      return true;
    });
  }

  resume(table: ExecTable): Promise<boolean> {
    return this.#change(async () => {
      if (this.#pausedAt === undefined) return false;
      const { cell, clock, id, store } = this.#parts;
      await requireFreezer(cell).thaw();
      const pausedFor = clock.now() - this.#pausedAt;
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
    const { cell, clock } = this.#parts;
    if (this.isPaused || this.isOver) return;
    cell.lasting?.endAfter({ afterMs: Math.max(0, this.cellEndsAt(table) - clock.now()), graceMs: 0 });
  }

  /** When the cell is gone if no server comes. */
  cellEndsAt(table: ExecTable): number {
    const { abandonedMs, ttlMs } = this.#parts;
    const last = Math.max(0, ...table.living().map(({ deadlineAt = 0 }) => deadlineAt));
    return Math.max(this.expiresAt(table), last + ttlMs) + abandonedMs;
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
