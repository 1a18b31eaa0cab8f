import type { LeftCell, LeftLastingCell } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
import { toHotcellError, type HotcellError } from '../core/errors.ts';
import { readLeft } from '../sessions/left-sessions.ts';
import { SessionStore } from '../sessions/session-store.ts';
import type { Config } from './config/config.ts';
import { sessionsFolder } from './open-sessions.ts';
import { findServer } from './serving-process.ts';

/** A cell whose server is gone. */
export interface LeftCellReport {
  readonly driver: string;
  readonly cell: string;
  /** As the log calls it; null for a cell of no session. */
  readonly session: string | null;
  /** Frozen: it cannot end by itself. */
  readonly paused: boolean;
  readonly since: string | null;
  /** When it ends by itself; null where it does not. */
  readonly until: string | null;
}

/** Cells of sessions in another folder. Only there can be told whether a server has them. */
export interface OtherStoreReport {
  readonly driver: string;
  readonly store: string;
  readonly cells: number;
  /** When the first of them was made. */
  readonly since: string | null;
}

export interface LeftReport {
  /** What `hotcell down` would end; nothing is changed. */
  readonly left: readonly LeftCellReport[];
  readonly otherStores: readonly OtherStoreReport[];
  /** Why the sessions of this folder cannot be told. */
  readonly storeProblem: Pick<HotcellError, 'code' | 'message' | 'hint'> | null;
}

interface Settings {
  readonly sessions: Pick<Config['sessions'], 'dir' | 'abandonedMs'>;
}

/** What can be told of the store of this folder. */
interface OwnStore {
  readonly id: string | undefined;
  /** A server has it: its cells are not left. */
  readonly isServed: boolean;
  readonly sessions: ReturnType<typeof readLeft>['sessions'];
  readonly problem: HotcellError | undefined;
}

export async function findLeftCells(config: Settings, drivers: readonly Driver[]): Promise<LeftReport> {
  const own = await lookInStore(config);
  const found = drivers.map(async (driver) => {
    const orphans = await driver.orphans();
    const lasting = (await driver.lasting?.list()) ?? [];
    const ownCells = own.isServed ? [] : lasting.filter(({ store }) => store === own.id);
    return {
      left: [...orphans, ...ownCells].map((cell) => toReport(driver.name, cell, own)),
      otherStores: toOtherStores(driver.name, lasting, own),
    };
  });
  // A driver that fails here has said so in its probe.
  const settled = await Promise.allSettled(found);
  const told = settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  return {
    left: told.flatMap(({ left }) => left),
    otherStores: told.flatMap(({ otherStores }) => otherStores),
    storeProblem: toProblem(own.problem),
  };
}

async function lookInStore({ sessions }: Settings): Promise<OwnStore> {
  const dir = sessionsFolder({ sessions });
  const unread = { id: SessionStore.idIn(dir), isServed: false, sessions: [], problem: undefined };
  if (!SessionStore.isIn(dir)) return { ...unread, id: '' };
  if ((await findServer(dir)) !== undefined) return { ...unread, isServed: true };
  try {
    const { store, sessions: left } = readLeft(dir, sessions.abandonedMs);
    return { ...unread, id: store, sessions: left };
  } catch (error) {
    return { ...unread, problem: toHotcellError(error) };
  }
}

function toReport(driver: string, { id, since }: LeftCell, own: OwnStore): LeftCellReport {
  const session = own.sessions.find(({ cell }) => cell === id);
  return {
    driver,
    cell: id,
    session: session?.session ?? null,
    paused: session?.paused === true,
    since: toTime(since),
    until: toTime(session?.until),
  };
}

/** None as long as nobody can tell which of them is ours. */
function toOtherStores(driver: string, cells: readonly LeftLastingCell[], own: OwnStore): OtherStoreReport[] {
  if (own.id === undefined) return [];
  const stores = Map.groupBy(cells, ({ store }) => store);
  stores.delete(own.id);
  return [...stores].map(([store, its]) => {
    const since = Math.min(...its.map((cell) => cell.since ?? Infinity));
    return { driver, store, cells: its.length, since: toTime(since) };
  });
}

function toProblem(error: HotcellError | undefined): LeftReport['storeProblem'] {
  return error === undefined ? null : { code: error.code, message: error.message, hint: error.hint };
}

function toTime(ms: number | undefined): string | null {
  return ms === undefined || !Number.isFinite(ms) ? null : new Date(ms).toISOString();
}
