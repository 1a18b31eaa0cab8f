import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Probe } from '../core/driver.ts';
import { SILENT_LOG } from '../core/log.ts';
import { inspectAppleImages, openAppleStore } from './apple-images.ts';
import { driversToTry, probeDriver, serves } from './choose-driver.ts';
import type { Config } from './config.ts';
import { listImages } from './images.ts';
import { toLanguageTable } from './language-table.ts';
import { DRIVER_NAMES, bundledTools } from './make-drivers.ts';
import { whyNotOnDisk } from './workspaces.ts';

export interface HostReport {
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
  const hooks = { log: SILENT_LOG, onProgress: () => {} };
  const probes = await Promise.all(
    DRIVER_NAMES.map(async (name) => ({ name, probe: await probeDriver(name, config, hooks) })),
  );
  const candidates = driversToTry(config, process.platform);
  const chosen =
    candidates.find((name) =>
      probes.some((driver) => driver.name === name && serves(driver.probe, config)),
    ) ?? candidates[0];
  return {
    node: process.version,
    drivers: probes.map((driver) => ({ ...driver, chosen: driver.name === chosen })),
    workspaces: inspectWorkspaces(config, chosen),
    languages: await inspectLanguages(config, chosen, probes.find(({ name }) => name === chosen)?.probe),
  };
}

function inspectWorkspaces(config: Config, driver: string | undefined): HostReport['workspaces'] {
  const reason = whyNotOnDisk(config, driver ?? '');
  return reason === undefined ? { storage: 'volume' } : { storage: 'memory', reason };
}

type LanguageReports = HostReport['languages'];

/** Where cells are made from images, a language is there when its image is. */
async function inspectLanguages(
  config: Config,
  driver: string | undefined,
  probe: Probe | undefined,
): Promise<LanguageReports> {
  if (probe?.ok !== true) return inspectPrograms(config);
  if (driver === 'docker') return inspectImages(config);
  const store = driver === 'apple' ? await openAppleStore(config) : undefined;
  return store === undefined ? inspectPrograms(config) : inspectAppleImages(config, store);
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
