import type { Command } from 'commander';
import type { Config } from '../../app/config/config.ts';
import type { ReadConfig } from '../../app/config/read-config.ts';
import type { CommandContext } from '../program.ts';
import { renderTable } from '../render/table.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';
import type { Terminal } from '../terminal.ts';

const EXAMPLES = `
Examples:
  hotcell config                                    every setting and where its value comes from
  hotcell config --keys                             every key, its variable and what it means
  HOTCELL_LIMITS_MEMORY_BYTES=512m hotcell config --json

Later sources win: defaults, settings file, environment, flags. A variable is HOTCELL_ and the
key in capitals: pool.size is HOTCELL_POOL_SIZE. Sizes take k, m, g; times take ms, s, min.`;

interface Options extends SettingsOptions {
  readonly json?: true;
  readonly keys?: true;
}

export function addConfigCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('config')
    .description('show every setting and where its value comes from')
    .option('--json', 'print JSON')
    .option('--keys', 'list the keys that exist instead of reading any value')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const { SETTINGS } = await import('../../app/config/config-keys.ts');
      if (options.keys === true) {
        renderKeys(terminal, [...SETTINGS.values()], options.json === true);
        return;
      }
      const settings = toRows(await readSettings(options, outcome), [...SETTINGS.values()]);
      if (options.json === true) {
        terminal.json(
          Object.fromEntries(
            settings.map(({ path, value, origin }) => [path, { value: value ?? null, origin }]),
          ),
        );
      } else {
        const rows = settings.map(({ path, value, origin }) => [
          path,
          value === undefined ? '' : JSON.stringify(value),
          origin === 'default' ? terminal.paint.dim(origin) : terminal.paint.bold(origin),
        ]);
        terminal.line(renderTable([['KEY', 'VALUE', 'FROM'], ...rows]));
      }
    });
  addSettingsOptions(command);
}

type Key = { path: string; environmentName: string; description: string; secret: boolean };

function renderKeys(terminal: Terminal, keys: readonly Key[], json: boolean): void {
  if (json) {
    terminal.json(
      keys.map((key) => ({ key: key.path, variable: key.environmentName, meaning: key.description })),
    );
    return;
  }
  const rows = keys.map((key) => [key.path, key.environmentName, key.description]);
  terminal.line(renderTable([['KEY', 'VARIABLE', 'MEANING'], ...rows]));
}

function toRows(read: ReadConfig, keys: readonly Key[]): { path: string; value: unknown; origin: string }[] {
  return keys.map((key) => {
    const value = valueOf(read.config, key.path);
    // SECURITY: without the mask the key would end up in terminals, logs and bug reports.
    const masked = key.secret && value !== undefined ? '********' : value;
    return { path: key.path, value: masked, origin: read.origins[key.path] ?? 'default' };
  });
}

function valueOf(config: Config, path: string): unknown {
  let found: unknown = config;
  for (const part of path.split('.')) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = new Map<string, unknown>(Object.entries(found)).get(part);
  }
  return found;
}
