import type { CellImage } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { Limits } from '../core/limits.ts';
import type { Preset } from '../egress/presets.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { PackageSpec, Packages, PrepareOptions, PreparedPackages } from './api.ts';
import type { Ecosystem } from './ecosystem.ts';
import { installInCell, type InstallCellParts } from './install-cell.ts';
import { requestId, type InstallRequest } from './install-request.ts';
import { mergeSpecs } from './package-spec.ts';
import { NPM } from './npm-ecosystem.ts';
import { SetFolder, type Owners, type SetFacts } from './set-folder.ts';
import { SharedWork } from './shared-work.ts';
import { takeSet } from './take-set.ts';

const MiB = 1024 * 1024;
const GiB = 1024 * MiB;
const HOUR_MS = 3_600_000;
const INSTALLS_AT_ONCE = 2;

/** /tmp of the cell holds everything twice: as it was fetched, and as it is installed. */
export const INSTALL_LIMITS: Limits = {
  cpus: 2,
  memoryBytes: 2 * GiB,
  processes: 256,
  diskBytes: GiB,
  openFiles: 4096,
  wallTimeMs: 120_000,
  outputBytes: 512 * MiB,
};

export interface PackageStoreOptions extends Pick<
  InstallCellParts,
  'driver' | 'openNetwork' | 'caBundle' | 'log'
> {
  /** On the host; made if it is not there. SECURITY: no cell may write to it. */
  readonly folder: string;
  /** npm's unless given. */
  readonly ecosystem?: Ecosystem;
  /** Has the installer in it, for drivers that use images. */
  readonly image?: CellImage;
  /** Of the cell that installs; `outputBytes` bounds a set on disk. */
  readonly limits?: Limits;
  /** The preset of the ecosystem: where packages come from. Registries that want a password are not served. */
  registry(): Promise<Preset>;
  /** For what packages are installed, such as `bun 1.4.4 linux x64`. */
  readonly platform: string;
  readonly minimumReleaseAgeSeconds?: number;
  readonly mostPackages?: number;
  /** Files, folders and links of a set. */
  readonly mostItems?: number;
  /** Of all sets together. */
  readonly mostStoreBytes?: number;
  /** A set that was asked for in this time is not removed: at least as long as a run may take. */
  readonly keepUsedMs?: number;
  readonly owners: Owners;
}

/** Installs packages, each set once, and keeps them. */
export class PackageStore implements Packages {
  readonly #options: PackageStoreOptions;
  readonly #ecosystem: Ecosystem;
  readonly #sets: SetFolder;
  readonly #installs = new Semaphore(INSTALLS_AT_ONCE);
  /** By the name of the request. */
  readonly #underWay = new SharedWork<PreparedPackages>();

  private constructor(options: PackageStoreOptions, sets: SetFolder) {
    this.#options = options;
    this.#ecosystem = options.ecosystem ?? NPM;
    this.#sets = sets;
  }

  static async open(options: PackageStoreOptions): Promise<PackageStore> {
    const { folder: path, owners, ecosystem = NPM } = options;
    return new PackageStore(options, await SetFolder.open({ path, lockFile: ecosystem.layout.lock, owners }));
  }

  get folder(): string {
    return this.#sets.path;
  }

  async prepare(specs: readonly PackageSpec[], options: PrepareOptions): Promise<PreparedPackages> {
    const request = await this.#toRequest(specs);
    const id = requestId(request);
    const found = this.#find(id);
    if (found !== undefined) return found;
    return this.#underWay.join(id, options.signal, (signal) =>
      this.#installs.run(
        // Somebody may have installed it while we waited.
        async () => this.#find(id) ?? this.#install(id, request, { ...options, signal }),
      ),
    );
  }

  #find(id: string): PreparedPackages | undefined {
    const key = this.#sets.resolved(id);
    const facts = key === undefined ? undefined : this.#sets.load(key);
    return key === undefined || facts === undefined ? undefined : this.#toPrepared(key, facts, true);
  }

  async #toRequest(specs: readonly PackageSpec[]): Promise<InstallRequest> {
    const { mostPackages = 64, minimumReleaseAgeSeconds = 0, platform } = this.#options;
    const merged = mergeSpecs(specs, (spec) => this.#ecosystem.checkSpec(spec));
    if (merged.length === 0) throw new HotcellError('INTERNAL', 'no package is asked for');
    if (merged.length > mostPackages) {
      throw new HotcellError(
        'PACKAGE_UNAVAILABLE',
        `${merged.length} packages are asked for, but only ${mostPackages} may be`,
        { hint: 'Import fewer packages in one run.' },
      );
    }
    const { hosts, variables = {}, problem } = await this.#options.registry();
    if (problem !== undefined) {
      const names = merged.map(({ name }) => name).join(', ');
      throw new HotcellError('PACKAGE_UNAVAILABLE', `${names} cannot be installed: ${problem}`, {
        hint: 'The operator has to configure the package manager on the server.',
      });
    }
    const ecosystem = this.#ecosystem.name;
    return { ecosystem, specs: merged, registry: { hosts, variables }, platform, minimumReleaseAgeSeconds };
  }

  async #install(id: string, request: InstallRequest, options: PrepareOptions): Promise<PreparedPackages> {
    const { limits = INSTALL_LIMITS, mostItems = 100_000, image, log } = this.#options;
    const startedAt = performance.now();
    const staged = await this.#sets.stage();
    try {
      const ecosystem = this.#ecosystem;
      const parts = { ...this.#options, ecosystem, image, limits };
      const { key, facts } = await installInCell(parts, {
        request,
        signal: options.signal,
        onProgress: (text) => options.onProgress(text),
        take: (archive) =>
          takeSet(archive, {
            ecosystem,
            request,
            into: staged.folder,
            mostBytes: limits.outputBytes,
            mostItems,
          }),
      });
      await staged.commit(key, facts);
      await this.#sets.remember(id, key);
      const durationMs = Math.round(performance.now() - startedAt);
      log.info(
        { key, packages: facts.packages.length, bytes: facts.bytes, durationMs },
        'packages installed',
      );
      await this.#shrink(key);
      return this.#toPrepared(key, facts, false);
    } finally {
      await staged.discard();
    }
  }

  async #shrink(justInstalled: string): Promise<void> {
    const { mostStoreBytes = 5 * GiB, keepUsedMs = HOUR_MS, log } = this.#options;
    const held = new Set([justInstalled]);
    const removed = await this.#sets.shrink(mostStoreBytes, Date.now() - keepUsedMs, held);
    if (removed.length > 0) log.info({ removed }, 'packages removed');
  }

  #toPrepared(key: string, { packages }: SetFacts, fromStore: boolean): PreparedPackages {
    return { key, modules: `store/${key}/${this.#ecosystem.layout.modules}`, packages, fromStore };
  }
}
