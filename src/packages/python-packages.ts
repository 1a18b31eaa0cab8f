import type { DriverTraits } from '../core/driver.ts';
import type { CellFolder } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import type { Job } from '../core/job.ts';
import type { InstalledPackage } from '../core/installed-package.ts';
import type { Packages } from './api.ts';
import type { PythonScanner } from './python-scanner.ts';

export interface PythonPackagesParts {
  readonly scanner: PythonScanner;
  /** Opened for packages of Python. */
  readonly store: Packages;
  /** Whether cells have a file system of their own. */
  readonly confines: DriverTraits['confines'];
}

type PythonJob = Pick<Job, 'code' | 'env' | 'files'>;

interface ReadyPython {
  readonly folders: readonly CellFolder[];
  readonly env: Readonly<Record<string, string>>;
  readonly packages: readonly InstalledPackage[];
}

const IN_CELL = '/packages';

/** Installs what Python code imports, before it runs. */
export class PythonPackages {
  readonly #parts: PythonPackagesParts;

  constructor(parts: PythonPackagesParts) {
    this.#parts = parts;
  }

  /** Undefined when the code needs none, or Python itself has something to say about it. */
  async prepare({ code, env, files }: PythonJob, signal: AbortSignal): Promise<ReadyPython | undefined> {
    const { scanner, store, confines } = this.#parts;
    const own = files.map(({ path }) => (path.split('/')[0] ?? '').replace(/\.pyi?$/, ''));
    const scan = await scanner.scan(code, { own, signal });
    if (!scan.ok) {
      if (scan.problem.kind === 'syntax') return undefined;
      throw new HotcellError('PACKAGE_UNAVAILABLE', `line ${scan.problem.line}: ${scan.problem.message}`);
    }
    if (scan.packages.length === 0) return undefined;
    const { modules, packages } = await store.prepare(scan.packages, { signal, onProgress: () => {} });
    const folder = { name: 'packages', folder: store.folder, at: IN_CELL };
    const path = `${confines === 'cells' ? IN_CELL : store.folder}/${modules}`;
    const given = env['PYTHONPATH'];
    // What comes with the code is found first.
    return {
      folders: [folder],
      env: { PYTHONPATH: given === undefined ? path : `${given}:${path}` },
      packages,
    };
  }
}
