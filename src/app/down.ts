import { realpath, rm } from 'node:fs/promises';
import type { Driver } from '../core/driver.ts';
import { PROMISES } from '../core/enforcement.ts';
import { toHotcellError, type HotcellError } from '../core/errors.ts';
import { deadInstances } from '../drivers/process/instance.ts';
import { DRIVER_NAMES } from '../drivers/registry.ts';
import { endLeftSessions, type LeftEnds, type StrayCell } from '../sessions/left-sessions.ts';
import { SessionStore } from '../sessions/session-store.ts';
import type { Config } from './config/config.ts';
import { makeDriver, type DriverHooks } from './drivers/make-drivers.ts';
import { workbenchFolder } from './mcp/open-workbenches.ts';
import { openAudit, openVolumes, sessionsFolder } from './open-sessions.ts';
import { findServer } from './serving-process.ts';
import { SYSTEM_CLOCK } from './system-clock.ts';

export interface DownReport {
  /** The pid of the one that was stopped. */
  readonly server: number | null;
  readonly sessions: LeftEnds['ended'];
  /** Other cells of servers that are gone. */
  readonly cells: readonly StrayCell[];
  readonly left: LeftEnds['left'];
  readonly problems: readonly HotcellError[];
}

/** Ends all that servers on these folders have left, and the server on them first. */
export async function takeDown(config: Config, hooks: DriverHooks): Promise<DownReport> {
  const dir = sessionsFolder(config);
  const server = await findServer(dir);
  if (server !== undefined) {
    hooks.onProgress(`stopping the server (pid ${server.pid ?? 'of another machine'})`);
    await server.stop();
  }
  const drivers = await usableDrivers(config, hooks);
  try {
    const { ended, strays, left, problems } = await endSessions(config, drivers, hooks);
    const { cells, problems: others } = await removeOrphans(drivers, hooks);
    for (const { directory } of await deadInstances(await workbenchFolder(config)))
      await rm(directory, { recursive: true, force: true });
    return {
      server: server?.pid ?? null,
      sessions: ended,
      cells: [...strays, ...cells],
      left,
      problems: [...problems, ...others],
    };
  } finally {
    await Promise.allSettled(drivers.map((driver) => driver.close()));
  }
}

/** No cell is made, so every promise about cells may be given up. */
async function usableDrivers(config: Config, hooks: DriverHooks): Promise<Driver[]> {
  const lenient = { ...config, weaker: [...PROMISES] };
  const found = DRIVER_NAMES.map(async (name) => {
    const driver = await makeDriver(name, lenient, hooks);
    return (await driver.probe()).ok ? [driver] : [];
  });
  const settled = await Promise.allSettled(found);
  return settled.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

async function endSessions(config: Config, all: readonly Driver[], hooks: DriverHooks): Promise<LeftEnds> {
  if (!SessionStore.isIn(sessionsFolder(config))) return { ended: [], strays: [], left: [], problems: [] };
  const dir = await realpath(sessionsFolder(config));
  const { log } = hooks;
  const audit = openAudit(config, log);
  try {
    return await endLeftSessions({
      dir,
      drivers: all.filter(({ lasting }) => lasting !== undefined),
      volumes: openVolumes(config, undefined, { dir, log }),
      audit,
      log,
      now: () => SYSTEM_CLOCK.now(),
      onEnded: ({ session, cell }) => hooks.onProgress(`ended session ${session}, cell ${cell ?? 'unknown'}`),
    });
  } finally {
    await audit?.close();
  }
}

async function removeOrphans(
  drivers: readonly Driver[],
  hooks: DriverHooks,
): Promise<Pick<DownReport, 'cells' | 'problems'>> {
  const cells: StrayCell[] = [];
  const problems: HotcellError[] = [];
  for (const driver of drivers) {
    try {
      const removed = await driver.reclaim();
      cells.push(...removed.map((cell) => ({ driver: driver.name, cell })));
      if (removed.length > 0) hooks.onProgress(`removed ${removed.length} other cells of ${driver.name}`);
    } catch (error) {
      problems.push(toHotcellError(error));
    }
  }
  return { cells, problems };
}
