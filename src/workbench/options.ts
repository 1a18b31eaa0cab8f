import type { CellImage } from '../core/cell.ts';
import type { Clock } from '../core/clock.ts';
import type { Driver } from '../core/driver.ts';
import type { ExecRequest } from '../core/exec.ts';
import type { LanguageTable } from '../core/language.ts';
import type { Log } from '../core/log.ts';
import type { CellNetwork, HttpRule, OpenNetwork } from '../egress/cell-network.ts';
import type { PackageSpec, Packages } from '../packages/api.ts';
import type { EgressRefusal } from '../wire/egress.ts';
import type { Denial, Permission } from '../wire/permissions.ts';
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
  readonly rules: HttpRules;
  /** The command that runs `{code}/main.ts` where walls are made around commands. */
  toBunRequest(run: BunRun): ExecRequest;
  /** What such a command was refused, taken out of what it wrote. */
  readDenials(stderr: string): { readonly denials: readonly Denial[]; readonly stderr: string };
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

export interface BunRun {
  readonly permissions: readonly Permission[];
  /** Variables that could be granted; those that were are in `permissions`. */
  readonly values: Readonly<Record<string, string>>;
  readonly network: CellNetwork | undefined;
}

/** Reads which packages code needs. */
export interface ImportReader {
  scan(code: string, options: { readonly fileName: string }): Promise<ImportScan>;
  /** There will be something to read soon. */
  warmUp?(): void;
  /** What was asked for by name and what was found, each once. Throws PACKAGE_UNAVAILABLE. */
  merge(names: readonly string[], found: readonly PackageSpec[]): readonly PackageSpec[];
}

export type ImportScan =
  | {
      readonly ok: true;
      readonly packages: readonly PackageSpec[];
      /** What is loaded before the code itself, in this order, such as `zod/v4`. */
      readonly eager?: readonly string[];
      /** As it is to be run. */
      readonly code: string;
      readonly warnings: readonly string[];
    }
  | {
      readonly ok: false;
      readonly problem: {
        readonly kind: 'syntax' | 'import';
        readonly message: string;
        readonly line: number;
        readonly column: number;
        readonly frame: string;
      };
    };

/** What the gate knows of rules. */
export interface HttpRules {
  /** Why it would allow nothing; undefined for one that can be used. */
  whyNoRule(rule: HttpRule): string | undefined;
  /** The narrowest rule that allows what was refused; undefined when none can. */
  ruleFor(refusal: EgressRefusal): HttpRule | undefined;
}
