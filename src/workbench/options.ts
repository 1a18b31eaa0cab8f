import type { CellImage } from '../core/cell.ts';
import type { Clock } from '../core/clock.ts';
import type { Driver } from '../core/driver.ts';
import type { LanguageTable } from '../core/language.ts';
import type { Log } from '../core/log.ts';
import type { OpenNetwork } from '../egress/cell-network.ts';
import type { PackageSpec, Packages } from '../packages/api.ts';
import type { ImportScan } from '../packages/scan-messages.ts';
import type { ExecutionMode } from './api.ts';
import type { WorkbenchSettings } from './settings.ts';

export interface WorkbenchesOptions {
  readonly settings: WorkbenchSettings;
  readonly mode: ExecutionMode;
  /** Of this process alone, on the host; whoever hands it in removes it after us, also after a crash. */
  readonly folder: string;
  /** Where snippets are kept; made when the first one is saved. */
  readonly snippetsFolder: string;
  readonly languages: LanguageTable;
  /** What variables may be granted, with their values. SECURITY: they are never logged. */
  readonly values: Readonly<Record<string, string>>;
  /** Asked with the first run and not before: it may be slow. A failure is asked again. */
  site(): Promise<WorkbenchSite>;
  readonly imports: ImportReader;
  /** Called when the last of them has ended. */
  afterClose?(): Promise<void>;
  /** Of milliseconds since 1970. */
  readonly clock: Clock;
  readonly log: Log;
}

/** What cells are made with. */
export interface WorkbenchSite {
  readonly driver: Driver;
  readonly packages: Packages;
  readonly openNetwork: OpenNetwork;
  /** Authorities that programs with a network trust, in PEM. */
  readonly caBundle?: Uint8Array | undefined;
  /** Undefined where cells are not made from images: all languages share one cell there. */
  readonly images: WorkbenchImages | undefined;
  readonly runtime: string;
  /** What is weaker than it could be here. */
  readonly notes: readonly string[];
}

export interface WorkbenchImages {
  /** Of the cells that run TypeScript. */
  readonly base: CellImage;
  /** Builds or pulls what is missing; callers who want the same share the work. */
  ensure(image: CellImage, onProgress: (text: string) => void): Promise<void>;
}

/** Reads which packages code needs. */
export interface ImportReader {
  scan(code: string, options: { readonly fileName: string }): Promise<ImportScan>;
  /** There will be something to read soon. */
  warmUp?(): void;
  /** What was asked for by name and what was found, each once. Throws PACKAGE_UNAVAILABLE. */
  merge(names: readonly string[], found: readonly PackageSpec[]): readonly PackageSpec[];
}
