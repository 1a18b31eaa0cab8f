import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { CellImage } from '../core/cell.ts';
import { imageNameOf, type Driver } from '../core/driver.ts';
import { imageOf } from '../core/language.ts';
import type { Log } from '../core/log.ts';
import { judgeOwner, ownerRecord } from '../drivers/process/owner.ts';
import { networkOpener } from '../egress/open-network.ts';
import { PackageStore, type PackageStoreOptions } from '../packages/package-store.ts';
import { PYPI } from '../packages/pip-ecosystem.ts';
import { PythonPackages } from '../packages/python-packages.ts';
import { PythonScanner } from '../packages/python-scanner.ts';
import type { RunPackages } from '../runs/run-packages.ts';
import type { Config } from './config/config.ts';
import { toLanguageTable } from './config/language-table.ts';
import { openMachineGate, readCaBundle, type MachineGate } from './machine-gate.ts';
import { bundledVersion } from './drivers/make-drivers.ts';
import { SYSTEM_CLOCK } from './system-clock.ts';

export interface PackageParts {
  readonly driver: Driver;
  readonly gate: MachineGate;
  readonly log: Log;
  /** Of the cells that install, for drivers that use images. */
  readonly image?: CellImage;
}

const INSTALLER_NETWORK = 'Only the registry of packages can be reached here.';
/** A set is not removed while code may run with it. */
const LEAST_KEPT_MS = 3_600_000;

/** Packages of npm, for code that Bun runs. */
export async function openNpmPackages(config: Config, parts: PackageParts): Promise<PackageStore> {
  return PackageStore.open({
    ...(await toCommon(config, parts)),
    folder: packagesFolder(config),
    registry: async () => (await parts.gate.presets()).npm,
    platform: `bun ${bundledVersion('bun')} ${process.platform} ${process.arch}`,
    minimumReleaseAgeSeconds: config.packages.minimumAgeSeconds,
    keepUsedMs: Math.max(LEAST_KEPT_MS, 2 * config.mcp.longestTimeMs),
  });
}

/** Packages of PyPI, for runs of Python. */
async function openPythonPackages(config: Config, parts: PackageParts): Promise<PythonPackages> {
  const { driver, image, log } = parts;
  const store = await PackageStore.open({
    ...(await toCommon(config, parts)),
    folder: join(packagesFolder(config), 'python'),
    ecosystem: PYPI,
    registry: async () => (await parts.gate.presets()).pypi,
    platform: `python ${imageNameOf(driver, image ?? NO_IMAGE, 'python3')} ${process.platform} ${process.arch}`,
    keepUsedMs: Math.max(LEAST_KEPT_MS, 2 * config.ceilings.wallTimeMs),
  });
  return new PythonPackages({
    scanner: new PythonScanner({
      driver,
      limits: config.limits,
      log,
      ...(image === undefined ? {} : { image }),
    }),
    store,
    confines: driver.traits.confines,
  });
}

export interface OpenedRunPackages extends RunPackages {
  close(): Promise<void>;
}

/** What runs of /execute may import beyond their language. */
export async function openRunPackages(config: Config, driver: Driver, log: Log): Promise<OpenedRunPackages> {
  const gate = openMachineGate(config, log);
  const python = toLanguageTable(config.languages)['python'];
  const image = python === undefined ? NO_IMAGE : imageOf(python);
  const packages = await openPythonPackages(config, { driver, gate, log, image });
  return {
    prepare: async (request, signal) =>
      request.language === 'python' ? packages.prepare(request, signal) : undefined,
    close: () => gate.close(),
  };
}

const NO_IMAGE: CellImage = { name: undefined, recipe: undefined };

async function toCommon(
  config: Config,
  { driver, gate, log, image }: PackageParts,
): Promise<Omit<PackageStoreOptions, 'folder' | 'registry' | 'platform'>> {
  const openNetwork = networkOpener(driver.traits.confines, {
    gate: () => gate.get(),
    clock: SYSTEM_CLOCK,
    log,
    howToAllow: INSTALLER_NETWORK,
  });
  return {
    driver,
    openNetwork,
    log,
    caBundle: await readCaBundle(),
    mostStoreBytes: config.packages.mostBytes,
    owners: {
      record: ownerRecord,
      isAlive: async (record) => (await judgeOwner(record)) === 'alive',
    },
    ...(image === undefined ? {} : { image }),
  };
}

function packagesFolder({ packages: { dir } }: Config): string {
  return resolve(dir ?? join(dataFolder(), 'packages'));
}

/** Where what AI clients keep stays, as its first users know it. */
export function dataFolder(): string {
  return join(homedir(), '.bun-runner-mcp');
}
