import { requireLasting } from '../core/capabilities.ts';
import type { Driver } from '../core/driver.ts';
import { toHotcellError, type HotcellError } from '../core/errors.ts';
import type { EndReason } from '../core/session-words.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { SessionRemains } from './session-remains.ts';
import { SessionStore } from './session-store.ts';
import type { SessionsOptions } from './sessions-options.ts';
import type { SessionRow, UnreadableSession } from './stored-session.ts';
import { VolumeHolds } from './volume-holds.ts';

/** A session whose server is gone. */
export interface LeftSession {
  /** As in the log. */
  readonly session: string;
  readonly cell: string | null;
  /** Null where an older version did not note it. */
  readonly driver: string | null;
}

type Row = SessionRow | UnreadableSession;

const MESSAGE = 'hotcell down ended it';

function toLeft(row: Row): LeftSession {
  const driver = 'problem' in row ? null : row.facts.driver;
  return { session: toSessionMark(row.id), cell: row.cell_id, driver };
}

/** One with its end, as it stands in the store. */
interface ReadSession extends LeftSession {
  /** Frozen, and without an end of its own. */
  readonly paused: boolean;
  readonly until: number | undefined;
}

/** What stands in a store that no server has. Throws SESSIONS_UNAVAILABLE when one has, DATA_TOO_NEW. */
export function readLeft(dir: string, abandonedMs: number): { store: string; sessions: ReadSession[] } {
  const store = SessionStore.look(dir);
  try {
    const rows = store.sessions.living();
    const sessions = rows.map((row) => {
      const paused = !('problem' in row) && row.paused_at !== null;
      return { ...toLeft(row), paused, until: endOf(store, row, abandonedMs) };
    });
    return { store: store.id, sessions };
  } finally {
    store.close();
  }
}

/** When its cell ends by itself; undefined for one that is frozen, and where nobody can tell. */
function endOf(store: SessionStore, row: Row, abandonedMs: number): number | undefined {
  if ('problem' in row || row.paused_at !== null) return undefined;
  const commands = store.execs.of(row.id).filter((exec) => 'result' in exec && exec.result === null);
  const deadlines = commands.map((exec) => ('deadline' in exec ? (exec.deadline ?? 0) : 0));
  return Math.max(row.touched_at, ...deadlines) + row.facts.ttlMs + abandonedMs;
}

export interface LeftOptions extends Pick<SessionsOptions, 'dir' | 'volumes' | 'audit' | 'log'> {
  /** All that can be used and make cells that outlive a server. */
  readonly drivers: readonly Driver[];
  now(): number;
  onEnded(session: LeftSession): void;
}

/** A cell of the store that none of its sessions has. */
export interface StrayCell {
  readonly driver: string;
  readonly cell: string;
}

export interface LeftEnds {
  readonly ended: readonly LeftSession[];
  /** Removed as well, such as one that an engine did not remove when its session ended. */
  readonly strays: readonly StrayCell[];
  /** Their cells are of drivers that cannot be asked now. */
  readonly left: readonly LeftSession[];
  /** Of drivers that did not do as they were asked. */
  readonly problems: readonly HotcellError[];
}

/**
 * Ends all sessions of a store that no server has, whichever driver made their cells. Nobody has to take them over for
 * that, so those end, too, that nobody could. May be killed and called again at any moment.
 */
export async function endLeftSessions(options: LeftOptions): Promise<LeftEnds> {
  const store = SessionStore.open(options.dir);
  try {
    return await endAll(store, options);
  } finally {
    store.close();
  }
}

async function endAll(store: SessionStore, options: LeftOptions): Promise<LeftEnds> {
  const { volumes, drivers, log } = options;
  const holds = new VolumeHolds(volumes);
  const remains = new SessionRemains({ store, holds, log });
  const rows = store.sessions.living();
  const names: (string | null)[] = drivers.map(({ name }) => name);
  // Sessions of a version that noted no driver are looked for on all of them.
  const able = new Set(names.length > 0 ? [...names, null] : []);
  const isAble = (row: Row): boolean => able.has(toLeft(row).driver);
  for (const row of rows) {
    const key = volumeOf(row);
    if (key !== undefined && !isUnborn(row)) holds.keep(key);
    if (isAble(row) && !isUnborn(row) && reasonOf(row) === undefined)
      store.sessions.beginEnd(row.id, { at: options.now(), reason: 'deleted', message: MESSAGE });
  }
  await volumes.prepare();
  const problems: HotcellError[] = [];
  const strays: StrayCell[] = [];
  const cells = new Set(rows.map((row) => row.cell_id));
  for (const driver of drivers) {
    try {
      const removed = await requireLasting(driver).reclaim(store.id, new Set());
      for (const cell of removed) if (!cells.has(cell)) strays.push({ driver: driver.name, cell });
    } catch (error) {
      problems.push(toHotcellError(error));
      able.delete(driver.name);
      able.delete(null);
    }
  }
  for (const row of rows.filter(isAble)) {
    if (isUnborn(row)) await remains.forgetUnborn(row);
    else await finish(row, remains, options);
  }
  await holds.reclaim();
  await volumes.close();
  const [ended, left] = [rows.filter(isAble), rows.filter((row) => !isAble(row))];
  return {
    ended: ended.filter((row) => !isUnborn(row)).map(toLeft),
    strays,
    left: left.map(toLeft),
    problems,
  };
}

async function finish(row: Row, remains: SessionRemains, options: LeftOptions): Promise<void> {
  const reason = reasonOf(row) ?? 'deleted';
  await remains.remove(row.id, volumeOf(row), reason);
  const { user, project } = 'problem' in row ? {} : row.facts;
  const { id: session, tenant } = row;
  options.audit?.append({ action: 'session.delete', tenant, user, project, session, outcome: reason });
  options.onEnded(toLeft(row));
}

/** Nobody has heard of it: its server was killed while it made it. */
function isUnborn(row: Row): row is SessionRow {
  return !('problem' in row) && row.state === 'creating';
}

/** Of one that was ending already. */
function reasonOf(row: Row): EndReason | undefined {
  return 'problem' in row ? undefined : (row.end_reason ?? undefined);
}

function volumeOf(row: Row): string | undefined {
  return 'problem' in row ? row.volumeKey : row.facts.volumeKey;
}
