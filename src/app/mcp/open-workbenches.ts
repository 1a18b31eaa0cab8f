import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Driver } from '../../core/driver.ts';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import {
  deadInstances,
  defaultStateDirectory,
  openInstance,
  type Instance,
} from '../../drivers/process/instance.ts';
import type { OpenNetwork } from '../../egress/cell-network.ts';
import type { Packages } from '../../packages/api.ts';
import { coversVariable } from '../../workbench/grantable.ts';
import type { WorkbenchSite, WorkbenchesOptions } from '../../workbench/options.ts';
import { KeptWorkbenches } from '../../workbench/workbenches.ts';
import { chooseDriver, type DriverChoice } from '../drivers/choose-driver.ts';
import type { Config } from '../config/config.ts';
import { toLanguageTable } from '../config/language-table.ts';
import { readCaBundle } from '../machine-gate.ts';
import { dataFolder } from '../open-packages.ts';
import { SYSTEM_CLOCK } from '../system-clock.ts';
import { runnerImages } from '../images/runner-images.ts';
import { makeWorkbenchTools } from './workbench-tools.ts';

/** What comes from other parts. */
export type WorkbenchTools = Pick<WorkbenchesOptions, 'imports'> & {
  openPackages(driver: Driver): Promise<Packages>;
  makeNetwork(driver: Driver): OpenNetwork;
  /** The driver that makes walls around commands, if it can serve here. Throws DRIVER_UNAVAILABLE. */
  chooseConfined(): Promise<DriverChoice>;
  close(): Promise<void>;
};

export interface OpenOptions extends Pick<
  WorkbenchesOptions,
  'mode' | 'settings' | 'snippetsFolder' | 'values' | 'log'
> {
  /** A driver that this process has chosen already; otherwise one is chosen with the first run. */
  readonly driver?: DriverChoice;
  readonly tools: WorkbenchTools;
}

/** Nothing slow happens here: drivers, engines and images are looked at with the first run. */
export async function openWorkbenches(config: Config, options: OpenOptions): Promise<KeptWorkbenches> {
  // Folders and files for the cells' users must not depend on what our caller had as umask.
  process.umask(0o022);
  const stateDirectory = await workbenchFolder(config);
  const site = lazySite(config, options);
  const dead = await deadInstances(stateDirectory);
  const instance = await openInstance(stateDirectory);
  // Nobody waits for it, and without a crash before there is nothing to do.
  const clearing = dead.length === 0 ? undefined : clearAway(dead, site, options.log);
  const { tools } = options;
  const workbenches = new KeptWorkbenches({
    ...options,
    ...tools,
    clock: SYSTEM_CLOCK,
    languages: toLanguageTable(config.languages),
    folder: instance.directory,
    site: () => site.get(),
    afterClose: async () => {
      await clearing;
      await site.close();
      await tools.close();
      await rm(instance.directory, { recursive: true, force: true });
    },
  });
  return workbenches;
}

/** Where workbenches of all servers have their folders. */
export async function workbenchFolder({ stateDir }: Config): Promise<string> {
  return `${stateDir ?? (await defaultStateDirectory())}-workbench`;
}

/** With the real parts, as the configuration has it. */
export function openConfiguredWorkbenches(
  config: Config,
  log: Log,
  driver?: DriverChoice,
): Promise<KeptWorkbenches> {
  const { mcp } = config;
  const values = Object.entries(process.env).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && coversVariable(mcp.grantable.env, entry[0]),
  );
  return openWorkbenches(config, {
    mode: mcp.mode,
    settings: mcp,
    snippetsFolder: resolve(mcp.snippetsDir ?? join(dataFolder(), 'snippets')),
    values: Object.fromEntries(values),
    tools: makeWorkbenchTools(config, log),
    log,
    // A server's own driver; confined processes are made by another one.
    ...(driver === undefined || mcp.mode !== 'container' ? {} : { driver }),
  });
}

/** What a server that was killed left behind: its cells, then its folders, so that another crash forgets nothing. */
async function clearAway(dead: readonly Instance[], site: LazySite, log: Log): Promise<void> {
  try {
    await site.get();
    for (const { directory } of dead) await rm(directory, { recursive: true, force: true });
  } catch (error) {
    log.warn({ error: messageOf(error) }, 'workbench reclaim failed');
  }
}

interface LazySite {
  get(): Promise<WorkbenchSite>;
  close(): Promise<void>;
}

/** One that failed is tried again with the next run. */
function lazySite(config: Config, options: OpenOptions): LazySite {
  let opening: Promise<WorkbenchSite> | undefined;
  return {
    get: (): Promise<WorkbenchSite> => {
      const current = (opening ??= openSite(config, options));
      current.catch(() => {
        if (opening === current) opening = undefined;
      });
      return current;
    },
    close: async (): Promise<void> => {
      const site = await opening?.catch(() => undefined);
      if (options.driver === undefined) await site?.driver.close();
    },
  };
}

async function openSite(config: Config, options: OpenOptions): Promise<WorkbenchSite> {
  const { log, tools } = options;
  const choice = options.driver ?? (await choose(config, options));
  const { driver, probe } = choice;
  if (options.driver === undefined) {
    const reclaimed = await driver.reclaim();
    if (reclaimed.length > 0) log.info({ cells: reclaimed.length }, 'cells reclaimed');
  }
  const packages = await tools.openPackages(driver);
  return {
    driver,
    packages,
    openNetwork: tools.makeNetwork(driver),
    caBundle: await readCaBundle(),
    images: driver.traits.images ? runnerImages(driver.name, config) : undefined,
    runtime: probe.runtime,
    notes: probe.notes.map(({ text }) => text),
  };
}

function choose(config: Config, { mode, tools, log }: OpenOptions): Promise<DriverChoice> {
  if (mode !== 'container') return tools.chooseConfined();
  return chooseDriver(config, { log, onProgress: (text) => log.debug({ text }, 'driver progress') });
}
