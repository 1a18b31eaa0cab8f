import type { Command } from 'commander';
import { usageError } from '../exit-codes.ts';
import { openFeature } from '../fleet/open-feature.ts';
import type { CommandContext } from '../program.ts';
import { toPrintable } from '../../lib/printable.ts';

const EXAMPLES = `
Examples:
  hotcell fleet retry SHOP-L1-002
  hotcell fleet retry SHOP-L1-002 --answer 'take the blue one'
  hotcell fleet retry --all-failed                 also those that are blocked
  hotcell fleet retry --all-failed --reset         with all attempts that a new task has

Tasks that failed, are blocked or put aside, or wait for another attempt, can be taken again at once. A
running fleet does so; otherwise hotcell fleet resume goes on.`;

interface Options {
  readonly feature?: string;
  readonly allFailed?: true;
  readonly reset?: true;
  readonly answer?: string;
  readonly json?: true;
}

export function addFleetRetryCommand(fleet: Command, { terminal }: CommandContext): void {
  fleet
    .command('retry')
    .description('have tasks that failed tried again')
    .argument('[task]', 'id of the task')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option('--all-failed', 'all tasks that failed or are blocked')
    .option('--reset', 'forget earlier attempts; otherwise there is one more')
    .option('--answer <text>', 'what the agent asked, or has to know; the next attempt is told')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (task: string | undefined, options: Options) => {
      if ((task === undefined) !== (options.allFailed === true))
        throw usageError('retry needs the id of one task, or --all-failed', 'Give one of them.');
      const open = await openFeature(options.feature, terminal);
      const [{ retryTasks }, { findOrchestrator }, { didYouMean }] = await Promise.all([
        import('../../fleet/retry-tasks.ts'),
        import('../../fleet/state/orchestrator-lock.ts'),
        import('../../app/config/nearest-name.ts'),
      ]);
      const retried = retryTasks(open.store, {
        task,
        reset: options.reset === true,
        answer: options.answer,
        suggest: didYouMean,
      });
      const { feature } = open.paths;
      const isAlive = findOrchestrator(open.paths) !== undefined;
      if (options.json === true) terminal.json({ feature, retried, running: isAlive });
      else if (retried.length === 0) terminal.note(`fleet: no task of ${feature} failed or is blocked`);
      else for (const id of retried) terminal.line(`${toPrintable(id)} can be taken again`);
      if (retried.length > 0 && !isAlive) terminal.note(`  → hotcell fleet resume --feature ${feature}`);
    });
}
