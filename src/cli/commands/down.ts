import type { Command } from 'commander';
import type { DownReport } from '../../app/down.ts';
import { EXIT_CODES } from '../exit-codes.ts';
import type { CommandContext } from '../program.ts';
import { count } from '../render/count.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';
import { makeTerminalLog } from '../terminal-log.ts';

const EXAMPLES = `
Examples:
  hotcell down                                   stop the server and end its sessions
  hotcell down --set sessions.dir=/srv/hotcell   the same for the server on another folder

Stops the server that has the folder of the setting sessions.dir, if one runs, and ends every session in it: commands,
cells, volumes. As after deleting a session its files are gone, and the dependencies of its project are kept. Then it
removes the cells that servers of this machine left when they were killed. Servers on other folders, and whatever is
not Hotcell's, are not touched. It may be interrupted and run again. Exits with 1 when something could not be ended.`;

export function addDownCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('down')
    .description('stop the server and end all that it left')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: SettingsOptions) => {
      const { config } = await readSettings(options, outcome);
      const { takeDown } = await import('../../app/down.ts');
      const log = makeTerminalLog(config.logLevel, terminal);
      const report = await takeDown(config, { log, onProgress: (text) => terminal.note(`hotcell: ${text}`) });
      const { left, problems } = report;
      for (const { message, hint } of problems) terminal.note(`hotcell: ${message}\n  → ${hint}`);
      for (const { session, driver } of left)
        terminal.note(
          `hotcell: session ${session} is left: the ${driver ?? 'right'} driver cannot be used now`,
        );
      if (options.json === true)
        terminal.json({
          ...report,
          problems: problems.map(({ code, message, hint }) => ({ code, message, hint })),
        });
      else terminal.line(describe(report));
      outcome.exitCode = left.length + problems.length === 0 ? EXIT_CODES.done : EXIT_CODES.unhealthy;
    });
  addSettingsOptions(command);
}

function describe({ server, sessions, cells, left }: DownReport): string {
  if (server === null && sessions.length + cells.length + left.length === 0)
    return 'Nothing to end: no server, no session and no cell is left.';
  const parts = [
    ...(server === null ? [] : ['stopped the server']),
    `ended ${count(sessions.length, 'session')}`,
    `removed ${count(cells.length, 'other cell')}`,
  ];
  return `${parts.join(', ')}.`.replace(/^./, (letter) => letter.toUpperCase());
}
