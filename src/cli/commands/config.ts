import type { Command } from 'commander';
import type { Setting } from '../../app/config/config-keys.ts';
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
      const { SETTINGS, valueAt } = await import('../../app/config/config-keys.ts');
      if (options.keys === true) {
        renderKeys(terminal, [...SETTINGS.values()], options.json === true);
        return;
      }
      const { config, origins } = await readSettings(options, outcome);
      const settings = [...SETTINGS.values()].map(({ path, secret }) => {
        const value = valueAt(config, path.split('.'));
        // SECURITY: without the mask the key would end up in terminals, logs and bug reports.
        const masked = secret && value !== undefined ? '********' : value;
        return { path, value: masked, origin: origins[path] ?? 'default' };
      });
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

function renderKeys(terminal: Terminal, keys: readonly Setting[], json: boolean): void {
  if (json) {
    terminal.json(
      keys.map((key) => ({ key: key.path, variable: key.environmentName, meaning: key.description })),
    );
    return;
  }
  const rows = keys.map((key) => [key.path, key.environmentName, key.description]);
  terminal.line(renderTable([['KEY', 'VARIABLE', 'MEANING'], ...rows]));
}
