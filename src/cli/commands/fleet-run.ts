import { InvalidArgumentError, type Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { addModeOptions } from '../fleet/agent-options.ts';
import { leadFleet, type LeadOptions } from '../fleet/lead-fleet.ts';
import { showPlan } from '../fleet/show-plan.ts';

const EXAMPLES = `
Examples:
  hotcell fleet run --dry-run                     who would do what, and in what mode
  hotcell fleet run --what-if                     how long with more or fewer workers
  hotcell fleet run --workers 4
  hotcell fleet run --mode container --driver oci
  hotcell fleet run --mode subprocess             no walls, and nothing to install
  hotcell fleet run --level 1                     stop after the first level

Every worker has a cell (mode container) or a process (mode subprocess), a worktree below
.mahabharatha-worktrees and a branch mahabharatha/FEATURE/worker-N. After each level their branches are merged into
mahabharatha/FEATURE/staging and the checks run. Your own branch is touched only by \`hotcell fleet merge\`.
Ctrl-C, \`hotcell fleet stop\` and even kill -9 lose no commit: \`hotcell fleet resume\` goes on.

Exit codes: 0 all done, 1 a person is needed (it says why, and what to do), 2 usage, 130 interrupted.`;

interface Options extends LeadOptions {
  readonly dryRun?: true;
  readonly whatIf?: true;
}

export function addFleetRunCommand(parent: Command, context: CommandContext): void {
  const command = parent
    .command('run')
    .aliases(['kurukshetra', 'rush'])
    .description('set the workers to the tasks of a feature')
    .option('--dry-run', 'show the plan and the mode, and do nothing')
    .option('--what-if', 'show how long it would take with other numbers of workers, and do nothing')
    .option('--resume', 'go on with what was begun, as `hotcell fleet resume`')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options & { readonly resume?: true }) => {
      if (options.dryRun === true || options.whatIf === true) return showPlan(context, options);
      await leadFleet(context, options, options.resume === true);
    });
  addLeadOptions(command);
}

/** What `run` and `resume` have in common. */
export function addLeadOptions(command: Command): Command {
  return addModeOptions(command)
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option(
      '-w, --workers <count>',
      'how many; `resume` keeps it; workers.max_concurrent of the configuration unless given',
      toCount,
    )
    .option('--auto-build', 'build what the workers need if it is missing, as `hotcell fleet build` does')
    .option('-g, --task-graph <file>', 'the task graph; found by itself unless given')
    .option('-l, --level <number>', 'stop after this level', toCount)
    .option('--timeout <seconds>', 'stop after this time; `resume` goes on', toCount)
    .option('--config <file>', 'settings of hotcell, for docker.host, runtime and the like')
    .option('--json', 'print the final report as JSON')
    .option('-v, --verbose', 'say more on the way');
}

function toCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 1_000_000)
    throw new InvalidArgumentError('It must be a whole number from 1 on.');
  return count;
}
