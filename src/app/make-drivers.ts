import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';
import type { Driver } from '../core/driver.ts';
import type { Log } from '../core/log.ts';
import { AppleDriver } from '../drivers/apple/driver.ts';
import { DockerDriver } from '../drivers/docker/driver.ts';
import { OciDriver } from '../drivers/oci/driver.ts';
import { PreloadDriver } from '../drivers/preload/driver.ts';
import { SubprocessDriver } from '../drivers/subprocess/driver.ts';
import type { Config } from './config.ts';
import { dockerEndpoint } from './docker-endpoint.ts';
import { toLanguageTable } from './language-table.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const GUEST = join(ROOT, 'guest');
export const RECIPES = join(ROOT, 'images');

export const DRIVER_NAMES = ['oci', 'docker', 'apple', 'preload', 'subprocess'] as const;
export type DriverName = (typeof DRIVER_NAMES)[number];

export interface DriverHooks {
  readonly log: Log;
  onProgress(text: string): void;
}

/** The only place that knows which drivers there are. */
export function makeDriver(name: DriverName, config: Config, hooks: DriverHooks): Driver {
  const { log } = hooks;
  const common = {
    stateDirectory: config.stateDir,
    guest: GUEST,
    tools: bundledTools(),
    weaker: config.weaker,
  };
  switch (name) {
    case 'oci':
      return new OciDriver({ ...common, runtime: config.runtime, rootfs: config.rootfs, log });
    case 'docker':
      return new DockerDriver({
        endpoint: dockerEndpoint(config),
        stateDirectory: config.stateDir,
        runtime: config.docker.runtime,
        guest: GUEST,
        recipes: RECIPES,
        languages: toLanguageTable(config.languages),
        weaker: config.weaker,
        log,
        onProgress: (text) => hooks.onProgress(text),
      });
    case 'apple':
      return new AppleDriver({
        cli: config.apple.cli,
        guest: GUEST,
        recipes: RECIPES,
        weaker: config.weaker,
        log,
        onProgress: (text) => hooks.onProgress(text),
      });
    case 'preload':
      return new PreloadDriver(common);
    case 'subprocess':
      return new SubprocessDriver(common);
  }
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
