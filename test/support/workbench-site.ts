import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../../src/app/config/config.ts';
import { readConfig } from '../../src/app/config/read-config.ts';
import { openWorkbenches, type WorkbenchTools } from '../../src/app/mcp/open-workbenches.ts';
import type { KeptWorkbenches } from '../../src/workbench/workbenches.ts';
import { HotcellError } from '../../src/core/errors.ts';
import { SILENT_LOG, type Log } from '../../src/core/log.ts';
import type { PackageSpec } from '../../src/packages/api.ts';
import type { CodeRequest } from '../../src/workbench/api.ts';
import { WorkbenchSettings } from '../../src/workbench/settings.ts';
import { engineHost } from './docker-engine.ts';
import { makeStateDirectory, removeFolders } from './server.ts';

export interface SiteWords {
  readonly driver: 'oci' | 'docker';
  readonly stateDirectory: string;
  readonly dataDir: string;
  readonly engine: string | undefined;
  readonly settings?: unknown;
}

/** Without packages and without a network, which have tests of their own. */
export function plainTools(dataDir: string, overrides: Partial<WorkbenchTools> = {}): WorkbenchTools {
  return {
    imports: {
      scan: (code) => Promise.resolve({ ok: true, packages: [], eager: [], code, warnings: [] }),
      merge: (_names, found) => found,
    },
    makeNetwork: () => () => Promise.reject(new HotcellError('INTERNAL', 'no gate here')),
    openPackages: () =>
      Promise.resolve({
        folder: join(dataDir, 'packages'),
        prepare: (specs: readonly PackageSpec[]) =>
          Promise.reject(
            new HotcellError(
              'PACKAGE_UNAVAILABLE',
              `${specs[0]?.name ?? ''} cannot be had: no registry here`,
            ),
          ),
      }),
    chooseConfined: () => Promise.reject(new HotcellError('DRIVER_UNAVAILABLE', 'no preload here')),
    close: () => Promise.resolve(),
    ...overrides,
  };
}

export function toConfig(words: SiteWords): Config {
  return readConfig({
    env: {},
    cwd: words.dataDir,
    flags: {
      driver: words.driver,
      stateDir: words.stateDirectory,
      ...(words.driver === 'docker' ? { 'docker.host': words.engine } : {}),
    },
  }).config;
}

export function openFromWords(
  words: SiteWords,
  tools: Partial<WorkbenchTools> = {},
  log: Log = SILENT_LOG,
): Promise<KeptWorkbenches> {
  return openWorkbenches(toConfig(words), {
    mode: 'container',
    settings: WorkbenchSettings.parse(words.settings ?? {}),
    snippetsFolder: join(words.dataDir, 'snippets'),
    values: {},
    tools: plainTools(words.dataDir, tools),
    log,
  });
}

/** Folders for one place of workbenches. */
export function makeSiteWords(driver: 'oci' | 'docker', settings: unknown = {}): SiteWords {
  const dataDir = mkdtempSync(join(tmpdir(), 'hotcell-workbench-'));
  mkdirSync(join(dataDir, 'packages'));
  return { driver, stateDirectory: makeStateDirectory(), dataDir, engine: engineHost(), settings };
}

export function removeSiteFolders({ dataDir, stateDirectory }: SiteWords): void {
  rmSync(dataDir, { recursive: true, force: true });
  removeFolders(stateDirectory);
}

export function request(code: string, more: Partial<CodeRequest> = {}): CodeRequest {
  return {
    code,
    language: 'typescript',
    packages: [],
    snippets: [],
    files: [],
    stdin: undefined,
    timeoutMs: undefined,
    ...more,
  };
}
