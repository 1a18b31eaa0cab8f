import type { InstalledPackage } from '../core/installed-package.ts';

/** A package as code asks for it: `zod`, `zod@3`, `@scope/name@^1.2`. */
export interface PackageSpec {
  readonly name: string;
  /** Undefined: the newest that the settings allow. */
  readonly range: string | undefined;
}

/** A set of packages that lies in the store, whole and never changed again. */
export interface PreparedPackages {
  /** The digest of the lock file and of the platform; names a folder in the store. */
  readonly key: string;
  /** Below the folder of the store: the path of `node_modules` itself, such as `store/<key>/node_modules`. */
  readonly modules: string;
  readonly packages: readonly InstalledPackage[];
  /** Nothing had to be installed. */
  readonly fromStore: boolean;
}

export interface PrepareOptions {
  readonly signal: AbortSignal;
  onProgress(text: string): void;
}

/** Packages of npm, installed once, each set in a cell of its own, and only read afterwards. */
export interface Packages {
  /** On the host; cells see it read-only as /packages. */
  readonly folder: string;
  /**
   * At least one package. Throws PACKAGE_UNAVAILABLE, which names the package, and then nothing may run. To be asked before
   * every run: that a set was asked for is what keeps it from being removed.
   */
  prepare(specs: readonly PackageSpec[], options: PrepareOptions): Promise<PreparedPackages>;
}
