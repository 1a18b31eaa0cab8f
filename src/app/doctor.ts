import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Driver, DriverTraits, Probe } from '../core/driver.ts';
import { DRIVER_NAMES, type DriverName } from '../drivers/registry.ts';
import { driversToTry, probeDriver, serves } from './drivers/choose-driver.ts';
import { findLeftCells, type LeftReport } from './left-cells.ts';
import type { Config } from './config/config.ts';
import { listImages } from './images/images.ts';
import { toLanguageTable } from './config/language-table.ts';
import { SILENT_HOOKS, bundledTools, makeDriver } from './drivers/make-drivers.ts';
import { whyNotOnDisk } from './workspaces.ts';

export interface HostReport extends LeftReport {
  readonly node: string;
  readonly drivers: readonly { readonly name: string; readonly chosen: boolean; readonly probe: Probe }[];
  /** Where the workspaces of sessions are. */
  readonly workspaces: { readonly storage: 'volume' | 'memory'; readonly reason?: string };
  readonly languages: readonly {
    readonly name: string;
    readonly available: boolean;
    readonly problem?: string;
  }[];
}

/** What works on this machine, without changing anything on it. */
export async function inspectHost(config: Config): Promise<HostReport> {
  const probes = await Promise.all(
    DRIVER_NAMES.map(async (name) => ({ name, probe: await probeDriver(name, config, SILENT_HOOKS) })),
  );
  const candidates = driversToTry(config, process.platform);
  const chosen =
    candidates.find((name) =>
      probes.some((driver) => driver.name === name && serves(driver.probe, config)),
    ) ?? candidates[0];
  const serving = probes.find(({ name }) => name === chosen)?.probe;
  const working = await Promise.all(
    probes.filter(({ probe }) => probe.ok).map(({ name }) => makeIfPossible(name, config)),
  );
  const traits = chosen === undefined ? undefined : (await makeIfPossible(chosen, config))?.traits;
  return {
    node: process.version,
    drivers: probes.map((driver) => ({ ...driver, chosen: driver.name === chosen })),
    workspaces: inspectWorkspaces(traits),
    languages: await inspectLanguages(config, serving?.ok === true && traits?.images === true),
    ...(await findLeftCells(
      config,
      working.filter((driver) => driver !== undefined),
    )),
  };
}

/** One that cannot even be set up has said so in its probe. */
function makeIfPossible(name: DriverName, config: Config): Promise<Driver | undefined> {
  return makeDriver(name, config, SILENT_HOOKS).catch(() => undefined);
}

function inspectWorkspaces(traits: DriverTraits | undefined): HostReport['workspaces'] {
  const reason = whyNotOnDisk(traits);
  return reason === undefined ? { storage: 'volume' } : { storage: 'memory', reason };
}

type LanguageReports = HostReport['languages'];

/** Where cells are made from images, a language is there when its image is. */
async function inspectLanguages(config: Config, usesImages: boolean): Promise<LanguageReports> {
  return usesImages ? inspectImages(config) : inspectPrograms(config);
}

function inspectPrograms(config: Config): LanguageReports {
  return Object.entries(toLanguageTable(config.languages)).map(([name, language]) => {
    const program = language.command[0] ?? '';
    if (isThere(program, config.rootfs ?? '/')) return { name, available: true };
    const remedy = language.package === undefined ? '' : `; apt-get install -y ${language.package}`;
    return { name, available: false, problem: `${program} is not installed${remedy}` };
  });
}

async function inspectImages(config: Config): Promise<LanguageReports> {
  const images = await listImages(config);
  return images.map(({ language, image, entry, commands }) =>
    entry?.stored === undefined
      ? {
          name: language,
          available: false,
          problem: `image ${image ?? '(none)'} is not there yet; the start pulls it, or: ${commands.join(', or: ')}`,
        }
      : { name: language, available: true },
  );
}

/** Cells see the folders below /usr and the bundled tools; a program elsewhere on the host is not there for them. */
function isThere(program: string, root: string): boolean {
  if (program.includes('/')) return existsSync(join(root, program));
  if (bundledTools().some((tool) => tool.name === program)) return true;
  return ['usr/local/bin', 'usr/bin', 'bin'].some((folder) => existsSync(join(root, folder, program)));
}
