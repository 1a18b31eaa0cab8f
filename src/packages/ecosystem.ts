import type { HotcellError } from '../core/errors.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { PackageSpec } from './api.ts';
import type { InstallRequest } from './install-request.ts';

/** What packages of one kind need: npm's, or Python's. */
export interface Ecosystem {
  /** Also the preset of the gate that leads to its registry. */
  readonly name: 'npm' | 'pypi';
  readonly layout: SetLayout;
  /** Throws PACKAGE_UNAVAILABLE for what is no name or no range. */
  checkSpec(spec: PackageSpec): PackageSpec;
  plan(request: InstallRequest): InstallPlan;
  explain(failed: FailedInstall): HotcellError;
  /**
   * Looks at what was unpacked: plain files, but hostile ones. Throws an Error that says what is wrong. Leaves the lock file
   * and the modules in the folder, and nothing else.
   */
  inspect(folder: string, request: InstallRequest): Promise<Inspected>;
}

/** Names in the folder of a set. */
export interface SetLayout {
  readonly lock: string;
  readonly modules: string;
}

/** A command in a cell, in a folder of its own. `{workdir}` may stand in its variables. */
export interface InstallPlan {
  readonly files: readonly { readonly name: string; readonly content: string }[];
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** What has to be brought out of the cell. */
  readonly results: readonly string[];
}

/** What is known of an installation that failed. */
export interface FailedInstall {
  readonly request: InstallRequest;
  /** Of the installer. SECURITY: registries and packages have a say in it. */
  readonly words: string;
  readonly refusals: readonly EgressRefusal[];
  readonly isTooLarge: boolean;
  /** Of the cell. */
  readonly diskBytes: number;
}

export interface Inspected {
  /** The text of the lock file. */
  readonly lock: string;
  readonly packages: readonly InstalledPackage[];
  /** Folders that the set must have to be whole, relative to its own. */
  readonly places: readonly string[];
}
