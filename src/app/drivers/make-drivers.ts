import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { Driver } from '../../core/driver.ts';
import { HotcellError } from '../../core/errors.ts';
import { SILENT_LOG, type Log } from '../../core/log.ts';
import type { ImageShelf } from '../../drivers/images/image-shelf.ts';
import type { DriverKind, DriverSurroundings } from '../../drivers/kind.ts';
import { kindOf, type DriverName } from '../../drivers/registry.ts';
import type { Config } from '../config/config.ts';
import { toLanguageTable } from '../config/language-table.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../../..');
export const RECIPES = join(ROOT, 'images');

export interface DriverHooks {
  readonly log: Log;
  onProgress(text: string): void;
}

export const SILENT_HOOKS: DriverHooks = { log: SILENT_LOG, onProgress: () => {} };

export async function makeDriver(name: DriverName, config: Config, hooks: DriverHooks): Promise<Driver> {
  const kind = kindOf(name);
  return kind.make(surroundingsOf(kind, config, hooks), config);
}

/** The images that cells of this driver are made from. Throws DRIVER_UNAVAILABLE. */
export async function openImages(name: string, config: Config): Promise<ImageShelf> {
  const kind = kindOf(name);
  if (kind.openImages === undefined)
    throw new HotcellError('INTERNAL', `cells of the ${name} driver are not made from images`);
  return kind.openImages(surroundingsOf(kind, config, SILENT_HOOKS), config);
}

function surroundingsOf(
  kind: Pick<DriverKind, 'variables'>,
  config: Config,
  hooks: DriverHooks,
): DriverSurroundings {
  return {
    stateDirectory: config.stateDir,
    guest: join(ROOT, 'guest'),
    recipes: RECIPES,
    tools: bundledTools(),
    languages: toLanguageTable(config.languages),
    weaker: config.weaker,
    variables: variablesFor(kind),
    log: hooks.log,
    onProgress: (text) => hooks.onProgress(text),
  };
}

/** Out of the environment with the first use, so kept for the next. */
const TAKEN = new Map<string, string | undefined>();

function variablesFor({ variables }: Pick<DriverKind, 'variables'>): Record<string, string | undefined> {
  if (variables === undefined) return {};
  for (const name of variables.taken.filter((taken) => !TAKEN.has(taken))) {
    TAKEN.set(name, process.env[name]);
    delete process.env[name];
  }
  return Object.fromEntries([
    ...variables.read.map((name) => [name, process.env[name]] as const),
    ...variables.taken.map((name) => [name, TAKEN.get(name)] as const),
  ]);
}

/** Of an interpreter that comes as an npm package. */
export function bundledVersion(name: 'bun' | 'node'): string {
  const file = createRequire(import.meta.url).resolve(`${name}/package.json`);
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(file, 'utf8'))).version;
}

/** Interpreters that come as npm packages, so that cells have them whatever the host has installed. */
export function bundledTools(): { name: string; path: string }[] {
  const resolve = createRequire(import.meta.url).resolve;
  const candidates = [
    { name: 'node', path: join(dirname(resolve('node/package.json')), 'bin/node') },
    { name: 'bun', path: join(dirname(resolve('bun/package.json')), 'bin/bun.exe') },
  ];
  return candidates.filter((tool) => existsSync(tool.path));
}
