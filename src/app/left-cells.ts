import type { LeftCell } from '../core/cell.ts';
import type { Driver } from '../core/driver.ts';
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
  readonly since: string | null;
  /** When it ends by itself; null where it does not. */
  readonly until: string | null;
}

type Left = ReturnType<typeof readLeft>;

/** Cells that `hotcell down` would end; nothing is changed. */
export async function findLeftCells(config: Config, drivers: readonly Driver[]): Promise<LeftCellReport[]> {
  const left = await lookInStore(config);
  const found = drivers.map(async (driver) => {
    const orphans = await driver.orphans();
    const lasting = left === undefined ? [] : ((await driver.lasting?.list(left.store)) ?? []);
    return [...orphans, ...lasting].map((cell) => toReport(driver.name, cell, left));
  });
  // A driver that fails here has said so in its probe.
  const settled = await Promise.allSettled(found);
  return settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

/** Undefined when a server has the store: its cells are not left. */
async function lookInStore(config: Config): Promise<Left | undefined> {
  const dir = sessionsFolder(config);
  if (!SessionStore.isIn(dir) || (await findServer(dir)) !== undefined) return undefined;
  try {
    return readLeft(dir, config.sessions.abandonedMs);
  } catch {
    return undefined;
  }
}

function toReport(driver: string, { id, since }: LeftCell, left: Left | undefined): LeftCellReport {
  const session = left?.sessions.find(({ cell }) => cell === id);
  const toTime = (ms: number | undefined): string | null =>
    ms === undefined ? null : new Date(ms).toISOString();
  return {
    driver,
    cell: id,
    session: session?.session ?? null,
    since: toTime(since),
    until: toTime(session?.until),
  };
}
