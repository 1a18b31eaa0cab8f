import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundledTools } from '../../src/app/drivers/make-drivers.ts';
import { SYSTEM_CLOCK } from '../../src/app/system-clock.ts';
import type { CellSpec } from '../../src/core/cell.ts';
import type { Driver } from '../../src/core/driver.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { OciDriver, type OciOptions } from '../../src/drivers/oci/driver.ts';
import { judgeOwner, ownerRecord } from '../../src/drivers/process/owner.ts';
import { caBundlePath } from '../../src/egress/ca-bundle.ts';
import { EgressGate } from '../../src/egress/gate.ts';
import { networkOpener } from '../../src/egress/open-network.ts';
import type { Preset } from '../../src/egress/presets.ts';
import type { PackageSpec, PreparedPackages } from '../../src/packages/api.ts';
import { parsePackageSpec } from '../../src/packages/package-spec.ts';
import { PackageStore, type PackageStoreOptions } from '../../src/packages/package-store.ts';
import { tmpdirOnTmpfs } from './server.ts';

export const OWNERS = {
  record: ownerRecord,
  isAlive: async (record: string): Promise<boolean> => (await judgeOwner(record)) === 'alive',
};

export function ociOptions(stateDirectory: string): OciOptions {
  return {
    runtime: 'auto',
    stateDirectory,
    rootfs: undefined,
    guest: fileURLToPath(new URL('../../guest', import.meta.url)),
    tools: bundledTools(),
    weaker: [],
    log: SILENT_LOG,
  };
}

interface SiteOptions {
  readonly loopback?: boolean;
  /** Of another site, which removes it. */
  readonly folder?: string;
  /** Instead of oci. */
  readonly driver?: (stateDirectory: string) => Driver;
}

/** A driver with a gate and folders for stores; everything is gone at the end. */
export class PackageSite implements AsyncDisposable {
  readonly driver: Driver;
  readonly folder: string;
  /** Of every cell that was made. */
  readonly made: CellSpec[] = [];
  readonly #state: string;
  readonly #isOurs: boolean;
  readonly #gate: EgressGate;
  readonly #preset: Preset;

  /** `preset` is of npm, or of whatever the store is opened for. */
  constructor(preset: Preset, { loopback = false, folder, driver }: SiteOptions = {}) {
    this.folder = folder ?? mkdtempSync(join(tmpdir(), 'hotcell-packages-'));
    this.#isOurs = folder === undefined;
    // Two sites of one folder find the cells of each other when one of them was killed.
    this.#state = join(tmpdirOnTmpfs(), basename(this.folder));
    this.driver = this.#counting(driver?.(this.#state) ?? new OciDriver(ociOptions(this.#state)));
    this.#preset = preset;
    const none: Preset = { hosts: [] };
    this.#gate = new EgressGate({
      presets: { npm: preset, pypi: preset, github: none },
      log: SILENT_LOG,
      ...(loopback ? { permit: ['127.0.0.0/8'], lookup: () => Promise.resolve(['127.0.0.1']) } : {}),
    });
  }

  async open(options: Partial<PackageStoreOptions> = {}): Promise<PackageStore> {
    const caPath = await caBundlePath(process.env);
    return PackageStore.open({
      folder: join(this.folder, 'packages'),
      driver: this.driver,
      openNetwork: networkOpener(this.driver.traits.confines, {
        gate: () => Promise.resolve(this.#gate),
        clock: SYSTEM_CLOCK,
        log: SILENT_LOG,
        howToAllow: '',
      }),
      registry: () => Promise.resolve(this.#preset),
      caBundle: caPath === undefined ? undefined : await readFile(caPath),
      platform: `bun ${process.platform} ${process.arch}`,
      owners: OWNERS,
      log: SILENT_LOG,
      ...options,
    });
  }

  #counting(driver: Driver): Driver {
    const create = driver.create.bind(driver);
    return Object.assign(driver, {
      create: (spec: CellSpec) => {
        this.made.push(spec);
        return create(spec);
      },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gate.close();
    await this.driver.close();
    if (!this.#isOurs) return;
    rmSync(this.#state, { recursive: true, force: true });
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export const specsOf = (...texts: string[]): PackageSpec[] => texts.map(parsePackageSpec);

export async function prepare(store: PackageStore, ...texts: string[]): Promise<PreparedPackages> {
  const signal = new AbortController().signal;
  return store.prepare(specsOf(...texts), { signal, onProgress: () => {} });
}
