import { Option, type Command } from 'commander';
import type { LogLevel } from '../../fleet/logs/log-line.ts';
import type { LogWish } from '../../fleet/logs/read-logs.ts';
import { usageError } from '../exit-codes.ts';
import { openFeature } from '../fleet/open-feature.ts';
import { toCount, toTime } from '../fleet/option-values.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { CommandContext } from '../program.ts';
import { toWhole } from './session-life.ts';

const EXAMPLES = `
Examples:
  hotcell fleet logs                               the last 100 lines of all workers
  hotcell fleet logs 2 --follow                    worker 2, until Ctrl-C
  hotcell fleet logs --level error --since 1h
  hotcell fleet logs --task SHOP-L1-002 --phase verify
  hotcell fleet logs --task SHOP-L1-002 --artifacts  what agent and verification printed, and the diff
  hotcell fleet logs --tail all --json | jq -r 'select(.event == "task_failed") | .task_id'

Logs are written on the host and outlive their cells. Times are those of the lines, or ago: 90s, 10m,
2h, 1d. --json prints the lines as they are.`;

/** Written out, because help must not wait for the schemas. */
const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

interface Options extends LogWish {
  readonly json?: true;
  readonly artifacts?: true;
}

export function addFleetLogsCommand(fleet: Command, { terminal, outcome }: CommandContext): void {
  fleet
    .command('logs')
    .description('show what the workers wrote down, also after their cells are gone')
    .argument('[worker]', 'number of one worker; all of them unless given', toWhole)
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .addOption(
      new Option('-n, --tail <count>', 'as many of the last lines, or all').argParser(toCount).default(100),
    )
    .option('--follow', 'go on with what is written from now on')
    .addOption(new Option('-l, --level <level>', 'at least this level').choices(LEVELS).default('info'))
    .option('--task <id>', 'only of this task')
    .option('--phase <name>', 'only of this phase: claim, execute, verify, commit, cleanup')
    .option('--event <name>', 'only this event, such as task_failed')
    .addOption(new Option('--since <time>', 'from this time on').argParser(toTime))
    .addOption(new Option('--until <time>', 'up to this time').argParser(toTime))
    .option('--search <text>', 'only lines that hold this text')
    .option('--artifacts', 'print the files that are kept of --task')
    .option('--json', 'print the lines as JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (worker: number | undefined, { artifacts, json, ...options }: Options) => {
      if (artifacts === true && options.task === undefined)
        throw usageError('--artifacts needs to know of which task', 'Give --task ID.');
      const open = await openFeature(options.feature, terminal);
      if (artifacts === true) {
        const { showArtifacts } = await import('../fleet/show-artifacts.ts');
        await showArtifacts(open, options.task ?? '', terminal);
        return;
      }
      const [{ readLogs }, { renderLogLine }] = await Promise.all([
        import('../../fleet/logs/read-logs.ts'),
        import('../fleet/render-log.ts'),
      ]);
      using stop = listenForStop(terminal);
      const wish = { ...options, feature: open.paths.feature, worker, signal: stop.signal };
      let count = 0;
      for await (const line of readLogs(open.paths, wish)) {
        count++;
        terminal.line(json === true ? JSON.stringify(line) : renderLogLine(line, terminal));
        if (terminal.stdout.writableNeedDrain) await terminal.flush();
        if (stop.signal.aborted) break;
      }
      if (count === 0 && options.follow !== true)
        terminal.note('fleet: there are no such lines; --level debug shows more');
      outcome.exitCode = stop.exitCode() ?? outcome.exitCode;
    });
}
