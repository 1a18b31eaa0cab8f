import { Option, type Command } from 'commander';
import { EXIT_CODES, usageError } from '../exit-codes.ts';
import { openFeature } from '../fleet/open-feature.ts';
import { toMs } from '../fleet/option-values.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { CommandContext } from '../program.ts';
import { ProgressLine } from '../progress-line.ts';
import { toPrintable } from '../../lib/printable.ts';
import { readSettings } from '../settings-options.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import { toWhole } from './session-life.ts';

const EXAMPLES = `
Examples:
  hotcell fleet stop                               agents get SIGTERM, after 10 seconds SIGKILL
  hotcell fleet stop --worker 2                    only this worker; its task goes to another one
  hotcell fleet stop --force                       at once, also a fleet that hangs

Nothing that was committed is lost, and hotcell fleet resume goes on. Cells of a fleet that was killed are
removed, too. Only this feature is stopped.`;

interface Options {
  readonly feature?: string;
  readonly worker?: number;
  readonly force?: true;
  readonly timeout: number;
  readonly config?: string;
  readonly json?: true;
}

export function addFleetStopCommand(fleet: Command, context: CommandContext): void {
  fleet
    .command('stop')
    .description('end the fleet of a feature, or one of its workers')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .addOption(new Option('-w, --worker <number>', 'only this worker').argParser(toWhole))
    .option('--force', 'do not wait for agents to end')
    .addOption(
      new Option('--timeout <seconds>', 'longest time to wait for the end')
        .argParser(toMs)
        .default(30_000, '30'),
    )
    .option('--config <file>', 'settings of hotcell, for docker.host and the like')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      if (options.worker === undefined) return stopAll(options, context);
      if (options.force === true)
        throw usageError('--force ends the whole fleet, --worker one of it', 'Use one of them.');
      await stopOne(options, options.worker, context);
    });
}

async function stopAll(options: Options, { terminal, outcome }: CommandContext): Promise<void> {
  const { config } = await readSettings({ config: options.config }, outcome);
  const open = await openFeature(options.feature, terminal);
  const { stopFleet } = await import('../../fleet/stop-fleet.ts');
  using stop = listenForStop(terminal);
  using progress = new ProgressLine(terminal);
  const log = makeTerminalLog(config.logLevel === 'debug' ? 'debug' : 'warn', terminal);
  const reclaim = async (): Promise<string[]> => {
    progress.show('fleet: removes the cells that are left');
    const { reclaimFleetCells } = await import('../../app/fleet/open-fleet.ts');
    return reclaimFleetCells(config, log);
  };
  const result = await stopFleet(
    { ...open, reclaim },
    {
      force: options.force === true,
      timeoutMs: options.timeout,
      signal: stop.signal,
      onProgress: (text) => progress.show(`fleet: ${text}`),
    },
  );
  progress.clear();
  const { pid, requeued, removedCells } = result;
  const { feature } = open.paths;
  if (options.json === true) {
    terminal.json({ feature, pid: pid ?? null, requeued, removed_cells: removedCells });
    return;
  }
  terminal.line(
    pid === undefined ? `nobody was working on ${feature}` : `stopped ${feature}: process ${pid} has ended`,
  );
  if (requeued.length > 0) terminal.line(`to be taken again: ${toPrintable(requeued.join(', '))}`);
  if (removedCells.length > 0) terminal.line(`removed cells: ${toPrintable(removedCells.join(', '))}`);
  if (terminal.stdout.isTTY) terminal.note(`  → hotcell fleet resume --feature ${feature}`);
}

async function stopOne(
  options: Options,
  worker: number,
  { terminal, outcome }: CommandContext,
): Promise<void> {
  const open = await openFeature(options.feature, terminal);
  const { stopWorker } = await import('../../fleet/stop-fleet.ts');
  using stop = listenForStop(terminal);
  const isStopped = await stopWorker(open, worker, { timeoutMs: options.timeout, signal: stop.signal });
  if (options.json === true) terminal.json({ feature: open.paths.feature, worker, stopped: isStopped });
  else if (isStopped) terminal.line(`stopped worker ${worker}`);
  if (isStopped) return;
  terminal.note(
    `fleet: worker ${worker} was told to stop, and has not done so within ${options.timeout / 1000} s`,
  );
  outcome.exitCode = EXIT_CODES.fleet;
}
