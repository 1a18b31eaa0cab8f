import { requireLasting } from '../core/capabilities.ts';
import type { Driver } from '../core/driver.ts';
import { HotcellError, toHotcellError } from '../core/errors.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { LiveSession } from './session.ts';
import type { SessionMaker } from './session-maker.ts';
import type { RemainsParts, SessionRemains } from './session-remains.ts';
import type { SessionRow, UnreadableSession } from './stored-session.ts';

interface RestorerParts extends RemainsParts {
  readonly driver: Driver;
  readonly maker: SessionMaker;
  readonly remains: SessionRemains;
  /** Sessions that are taken over at once. */
  readonly adopting: number;
  readonly abandonedMs: number;
  now(): number;
  onAdopted(session: LiveSession): void;
  onLost(reason: LostReason): void;
}

type LostReason = 'host_restarted' | 'cell_lost' | 'expired';

/** A session that goes on without us: what is wrong may be mended, or another version may understand it. */
interface Unreachable {
  readonly tenant: string;
  readonly cellId: string | null;
  readonly error: HotcellError;
}

/** Takes over what the server before us left. Only a cell that the driver calls lost ends its session. */
export class SessionRestorer {
  readonly #parts: RestorerParts;
  readonly #adopted: string[] = [];
  readonly #unreachable = new Map<string, Unreachable>();

  constructor(parts: RestorerParts) {
    this.#parts = parts;
  }

  get unreachableCount(): number {
    return this.#unreachable.size;
  }

  /** Why nobody can use this session, if it is the tenant's and could not be taken over. */
  whyUnreachable(id: string, tenant: string): HotcellError | undefined {
    const found = this.#unreachable.get(id);
    return found?.tenant === tenant ? found.error : undefined;
  }

  /** Takes over what runs, ends what is gone, and removes what nobody knows. */
  async restore(lostReason: LostReason): Promise<void> {
    const { store, driver, holds, remains, adopting } = this.#parts;
    const rows: SessionRow[] = [];
    for (const row of store.sessions.living()) {
      if ('problem' in row) this.#leaveUnread(row);
      else rows.push(row);
    }
    for (const { state, facts } of rows) if (state !== 'creating') holds.keep(facts.volumeKey);
    const permits = new Semaphore(adopting);
    await Promise.all(rows.map((row) => permits.run(() => this.#restoreOne(row, lostReason))));
    const left = [...this.#unreachable.values()].flatMap(({ cellId }) => cellId ?? []);
    await requireLasting(driver).reclaim(store.id, new Set([...this.#adopted, ...left]));
    for (const row of rows) if (row.state === 'creating') await remains.forgetUnborn(row);
    await holds.reclaim();
  }

  async #restoreOne(row: SessionRow, lostReason: LostReason): Promise<void> {
    const { maker, remains } = this.#parts;
    if (row.state === 'creating') return;
    if (row.state === 'ending') {
      await remains.remove(row.id, row.facts.volumeKey, row.end_reason ?? 'cell_lost');
      return;
    }
    try {
      const session = await maker.adopt(row);
      this.#adopted.push(session.parts.cell.id);
      this.#parts.onAdopted(session);
    } catch (error) {
      const failure = toHotcellError(error);
      // A driver that cannot serve at present says nothing about its cells.
      if (failure.code === 'DRIVER_UNAVAILABLE') throw failure;
      if (failure.code === 'CELL_LOST')
        await this.#endLost(row, this.#hasExpired(row) ? 'expired' : lostReason, failure.message);
      else this.#leave(row, failure);
    }
  }

  /** Its cell ended by itself, since no server did. */
  #hasExpired({ facts, touched_at: touchedAt, paused_at: pausedAt }: SessionRow): boolean {
    return pausedAt === null && touchedAt + facts.ttlMs + this.#parts.abandonedMs < this.#parts.now();
  }

  async #endLost({ id, facts }: SessionRow, reason: LostReason, message: string): Promise<void> {
    const { store, remains, log } = this.#parts;
    log.warn({ session: toSessionMark(id), reason, error: message }, 'session lost');
    store.sessions.beginEnd(id, { at: this.#parts.now(), reason, message });
    await remains.remove(id, facts.volumeKey, reason);
    this.#parts.onLost(reason);
  }

  #leaveUnread(row: UnreadableSession): void {
    const { holds } = this.#parts;
    if (row.volumeKey === undefined) holds.keepAll();
    else holds.keep(row.volumeKey);
    this.#leave(row, new Error(`its record cannot be read: ${row.problem}`));
  }

  /** Cell, rows, output and volume stay as they are. */
  #leave({ id, tenant, cell_id: cellId }: Pick<SessionRow, 'id' | 'tenant' | 'cell_id'>, cause: Error): void {
    const error = new HotcellError(
      'SESSION_UNREACHABLE',
      `the session goes on, but this server could not take it over: ${cause.message}`,
      { cause },
    );
    this.#unreachable.set(id, { tenant, cellId, error });
    const { log } = this.#parts;
    log.error({ session: toSessionMark(id), cell: cellId, error: cause.message }, 'session unreachable');
  }
}
