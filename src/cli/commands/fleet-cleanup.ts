import type { Command } from 'commander';
import type { CleanUpPlan, CleanUpWish } from '../../fleet/clean-up.ts';
import type { FleetPaths } from '../../fleet/names.ts';
import { usageError } from '../exit-codes.ts';
import { confirm } from '../fleet/confirm.ts';
import { renderCleanUp } from '../fleet/render-clean-up.ts';
import { openFeature } from '../fleet/open-feature.ts';
import type { CommandContext } from '../program.ts';
import { readSettings } from '../settings-options.ts';
import { SlowNote } from '../slow-note.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import type { Terminal } from '../terminal.ts';

const EXAMPLES = `
Examples:
  hotcell fleet cleanup --dry-run                  what would go, and what would stay and why
  hotcell fleet cleanup --feature shop --keep-logs
  hotcell fleet cleanup --all --yes

Removes cells, worktrees, private folders of the cells, the state, logs, and branches whose commits are all
in the target or in the feature branch. Branches with commits that are nowhere else stay and are named, and as long as
\`hotcell fleet merge\` has something to merge, so does the state that it needs; --force removes all of them and prints
their commits. Specs in .gsd and the configuration always stay. A feature that somebody works on is refused.`;

interface Options extends CleanUpWish {
  readonly feature?: string;
  readonly all?: true;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly config?: string;
  readonly json?: true;
}

export function addFleetCleanupCommand(fleet: Command, context: CommandContext): void {
  fleet
    .command('cleanup')
    .description('remove what a fleet left behind; specs and commits stay')
    .option('-f, --feature <name>', 'the feature; the current one unless given')
    .option('--all', 'all features of this repository')
    .option('--keep-logs', 'leave logs, artifacts of tasks and events')
    .option('--keep-branches', 'leave all branches')
    .option('--force', 'also branches with commits that are nowhere else, and what merge would need')
    .option('--dry-run', 'say what would go, and do nothing')
    .option('-y, --yes', 'do not ask; needed where there is no terminal')
    .option('--config <file>', 'settings of hotcell, for docker.host and the like')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: Options) => runCleanUp(options, context));
}

async function runCleanUp(options: Options, { terminal, outcome }: CommandContext): Promise<void> {
  if (options.all === true && options.feature !== undefined)
    throw usageError('--all means every feature, --feature one', 'Use one of them.');
  const { config } = await readSettings({ config: options.config }, outcome);
  const [{ cleanUp, planCleanUp }, { HostGit }, { readFleetEnvironment }] = await Promise.all([
    import('../../fleet/clean-up.ts'),
    import('../../fleet/git/host-git.ts'),
    import('../../app/fleet/fleet-environment.ts'),
  ]);
  const features = await findFeatures(options, terminal);
  const [first] = features;
  if (first === undefined) {
    terminal.note('fleet: there is nothing to clean up');
    return;
  }
  const git = await HostGit.open(first.root, readFleetEnvironment().variables);
  const plans = await planCleanUp(git, features, options);
  if (options.dryRun === true) {
    show(plans, [], { isDone: false, json: options.json === true }, terminal);
    return;
  }
  if (options.yes !== true) {
    if (terminal.stderr.isTTY)
      for (const line of renderCleanUp(plans, [], terminal.paint)) terminal.note(line);
    await confirm(`Remove this of ${features.map(({ feature }) => feature).join(', ')}?`, terminal);
  }
  using slow = new SlowNote(terminal, 'mahabharatha');
  slow.tell(() => 'cleans up');
  const log = makeTerminalLog(config.logLevel === 'debug' ? 'debug' : 'warn', terminal);
  const reclaim = async (): Promise<string[]> =>
    (await import('../../app/fleet/open-fleet.ts')).reclaimFleetCells(config, log);
  const { WORKTREE_VOLUMES: volumes } = await import('../../app/fleet/fleet-machine.ts');
  const done = await cleanUp({ git, reclaim, volumes }, features, options);
  show(done.plans, done.removedCells, { isDone: true, json: options.json === true }, terminal);
}

async function findFeatures({ all, feature }: Options, terminal: Terminal): Promise<FleetPaths[]> {
  if (all !== true) return [(await openFeature(feature, terminal)).paths];
  const [{ findRepositoryRoot }, { fleetPaths }, { listAllFeatures }] = await Promise.all([
    import('../../fleet/find-root.ts'),
    import('../../fleet/names.ts'),
    import('../../fleet/clean-up.ts'),
  ]);
  const root = findRepositoryRoot(process.cwd());
  return (await listAllFeatures(root)).map((name) => fleetPaths(root, name));
}

function show(
  plans: readonly CleanUpPlan[],
  cells: readonly string[],
  how: { readonly isDone: boolean; readonly json: boolean },
  terminal: Terminal,
): void {
  if (how.json) {
    terminal.json({ done: how.isDone, features: plans, removed_cells: cells });
    return;
  }
  for (const line of renderCleanUp(plans, cells, terminal.paint)) terminal.line(line);
  terminal.note(how.isDone ? 'fleet: cleaned up' : 'fleet: nothing was done (--dry-run)');
}
