import type { Command } from 'commander';
import { WORKER_DRIVERS } from '../../app/drivers/driver-choices.ts';
import type { MergeOrder } from '../../fleet/merge-fleet.ts';
import { toPrintable } from '../../lib/printable.ts';
import type { CommandContext } from '../program.ts';

const EXAMPLES = `
Examples:
  hotcell fleet merge --dry-run                what would be merged
  hotcell fleet merge                          into the branch that the feature began on
  hotcell fleet merge --target develop

Merges mahabharatha/FEATURE/staging, the result of all levels so far, into the target. It is the only command that
touches a branch of yours. A conflict changes nothing and is told with the commands that resolve it. Where the target
is checked out, files that you have changed stay; those that the merge would change are named, and nothing is merged.`;

interface Options extends Pick<MergeOrder, 'feature' | 'target' | 'dryRun' | 'force'> {
  readonly json?: true;
}

export function addFleetMergeCommand(parent: Command, { terminal }: CommandContext): void {
  parent
    .command('merge')
    .description('carry the result of a feature into your branch')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option(
      '-t, --target <branch>',
      'the branch to merge into; the one that the feature began on unless given',
    )
    .option('--force', 'also while levels are open, and with changed settings of the fleet')
    .option('--dry-run', 'show what would be merged, and do nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const [{ mergeFleet }, { readFleetEnvironment }] = await Promise.all([
        import('../../fleet/merge-fleet.ts'),
        import('../../app/fleet/fleet-environment.ts'),
      ]);
      const merged = await mergeFleet({
        ...options,
        folder: process.cwd(),
        env: readFleetEnvironment().variables,
        drivers: WORKER_DRIVERS,
      });
      if (options.json === true) {
        terminal.json(merged);
        return;
      }
      const { branch, target, commits, commit } = merged;
      for (const line of commits) terminal.line(`  ${toPrintable(line)}`);
      if (options.dryRun === true)
        terminal.line(`${commits.length} commits of ${branch} would be merged into ${target}.`);
      else if (commits.length === 0) terminal.line(`${target} has all of ${branch} already.`);
      else
        terminal.line(
          `${terminal.paint.green('✓')} ${branch} is merged into ${target}: ${commit?.slice(0, 12) ?? ''}`,
        );
    });
}
