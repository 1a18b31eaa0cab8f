import { Option, type Command } from 'commander';
import { usageError } from '../exit-codes.ts';
import { openFeature } from '../fleet/open-feature.ts';
import type { StatusSections } from '../fleet/render-status.ts';
import { toMs } from '../fleet/option-values.ts';
import type { CommandContext } from '../program.ts';
import { toWhole } from './session-life.ts';

const EXAMPLES = `
Examples:
  hotcell fleet status
  hotcell fleet status --watch                     a live table; without a terminal, a line for every change
  hotcell fleet status --tasks --level 2
  hotcell fleet status --json | jq '.progress'

Reads the state in .mahabharatha/state and changes nothing. --watch waits for a run to begin and ends with it:
with 0 when all is complete, with 1 when something is left. With --json it prints one object a line.`;

interface Options extends StatusSections {
  readonly feature?: string;
  readonly watch?: true;
  readonly json?: true;
  readonly interval: number;
}

const SHORTEST_INTERVAL_MS = 100;

export function addFleetStatusCommand(fleet: Command, { terminal, outcome }: CommandContext): void {
  fleet
    .command('status')
    .description('show how far a feature is, also while it runs elsewhere')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option('-w, --watch', 'go on showing it until it ends')
    .addOption(new Option('-l, --level <number>', 'only this level').argParser(toWhole))
    .addOption(
      new Option('--interval <seconds>', 'between two looks of --watch').argParser(toMs).default(1000, '1'),
    )
    .option('--tasks', 'show tasks')
    .option('--workers', 'show workers')
    .option('--commits', 'show the commits of the tasks')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      if (options.interval < SHORTEST_INTERVAL_MS)
        throw usageError('--interval is too short', 'Give at least 0.1 seconds.');
      const open = await openFeature(options.feature, terminal);
      if (options.watch === true) {
        const { watchStatus } = await import('../fleet/watch-status.ts');
        const wish = { sections: options, json: options.json === true, intervalMs: options.interval };
        outcome.exitCode = await watchStatus(open, wish, terminal);
        return;
      }
      const [{ watchFleet }, { renderStatus }, { toStatusJson }] = await Promise.all([
        import('../fleet/look-at-fleet.ts'),
        import('../fleet/render-status.ts'),
        import('../../fleet/status/status-json.ts'),
      ]);
      const { state, view } = await watchFleet(open)();
      if (options.json === true) terminal.json(toStatusJson(state, view));
      else for (const line of renderStatus(view, options, terminal.paint)) terminal.line(line);
    });
}
