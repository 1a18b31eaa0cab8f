import type { CellFolder } from '../core/cell.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { RunRequest } from './run.ts';

/** Packages that code imports, where the operator lets them be installed. */
export interface RunPackages {
  /** Undefined when it needs none. Throws PACKAGE_UNAVAILABLE, which names the package, and then nothing runs. */
  prepare(request: RunRequest, signal: AbortSignal): Promise<ReadyPackages | undefined>;
}

export interface ReadyPackages {
  /** What the cell must see, which is why it gets one of its own. */
  readonly folders: readonly CellFolder[];
  /** Tells the interpreter where they are. */
  readonly env: Readonly<Record<string, string>>;
  readonly packages: readonly InstalledPackage[];
}
