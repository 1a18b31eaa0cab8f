import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { renderTable } from '../render/table.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell languages
  hotcell languages --json

Add a language in the settings file:
  languages:
    lua: { extension: lua, command: [lua, "{filepath}"], package: lua5.4 }`;

export function addLanguagesCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('languages')
    .description('list the languages and whether they can run here')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: SettingsOptions) => {
      const { config } = await readSettings(options, outcome);
      const { inspectHost } = await import('../../app/doctor.ts');
      const { toLanguageTable } = await import('../../app/config/language-table.ts');
      const table = toLanguageTable(config.languages);
      const { languages } = await inspectHost(config);
      const statuses = new Map(languages.map((status) => [status.name, status]));
      const rows = Object.entries(table).map(([name, language]) => ({
        name,
        extension: language.extension,
        command: language.command,
        image: language.image ?? null,
        available: statuses.get(name)?.available ?? false,
        problem: statuses.get(name)?.problem ?? null,
      }));
      if (options.json === true) {
        terminal.json(rows);
        return;
      }
      const cells = rows.map((row) => [
        row.name,
        `.${row.extension}`,
        row.command.join(' '),
        row.image ?? '',
        row.available ? terminal.paint.green('yes') : terminal.paint.red(`no: ${row.problem ?? 'unknown'}`),
      ]);
      terminal.line(renderTable([['NAME', 'FILE', 'COMMAND', 'IMAGE', 'AVAILABLE'], ...cells]));
    });
  addSettingsOptions(command);
}
