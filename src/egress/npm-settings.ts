import * as z from 'zod';
import type { Registries } from './presets.ts';
import { withoutSecrets } from './registry-url.ts';
import type { AskProgram } from './ask-program.ts';

/** The registries that npm uses here: its own, and those of scopes. */
export async function readNpm(run: AskProgram): Promise<Registries> {
  const [settings, builtIn] = await Promise.all([
    run('npm', ['config', 'list', '--long', '--json']),
    run('npm', ['config', 'get', 'registry', '--globalconfig=/dev/null'], 'bare'),
  ]);
  return planNpm(parseNpmSettings(settings), builtIn.trim());
}

/** URLs by the name of the setting, such as `registry` or `@scope:registry`. */
export function parseNpmSettings(json: string): ReadonlyMap<string, string> {
  const registries = Object.entries(parseObject(json)).flatMap(([name, value]): [string, string][] =>
    /^(?:@[^:]+:)?registry$/.test(name) && typeof value === 'string' ? [[name, value]] : [],
  );
  return new Map(registries);
}

/** SECURITY: an error of the parser would repeat what stands in the settings. */
function parseObject(json: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(json));
  } catch {
    throw new Error('npm does not list its settings');
  }
}

/** npm in a cell is told of the registry only if it would take another one by itself, since it then overrides a project's own. */
export function planNpm(settings: ReadonlyMap<string, string>, builtIn: string): Registries {
  const registry = settings.get('registry');
  const urls = [...settings.values()];
  const told = registry === undefined || registry === builtIn ? undefined : withoutSecrets(registry);
  return { urls, variables: told === undefined ? {} : { npm_config_registry: told } };
}
