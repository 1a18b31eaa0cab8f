import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { addFleetBuildCommand } from './fleet-build.ts';
import { addFleetCleanupCommand } from './fleet-cleanup.ts';
import { addFleetDesignCommand } from './fleet-design.ts';
import { addFleetInitCommand } from './fleet-init.ts';
import { addFleetRunCommand } from './fleet-run.ts';
import { addFleetLogsCommand } from './fleet-logs.ts';
import { addFleetMergeCommand } from './fleet-merge.ts';
import { addFleetPlanCommand } from './fleet-plan.ts';
import { addFleetResumeCommand } from './fleet-resume.ts';
import { addFleetRetryCommand } from './fleet-retry.ts';
import { addFleetStatusCommand } from './fleet-status.ts';
import { addFleetStopCommand } from './fleet-stop.ts';

export const FLEET_EXAMPLES = `
From an idea to a merged feature, in a git repository:
  hotcell fleet init                           write .mahabharatha/config.yaml
  hotcell fleet build                          make the image of the workers, once
  hotcell fleet plan login 'users sign in with a passkey'
                                               write down what is wanted: .gsd/specs/login/requirements.md
  hotcell fleet plan login --approve           when you have read it and agree
  hotcell fleet design                         cut it into tasks: .gsd/specs/login/task-graph.json
  hotcell fleet run --dry-run                  see who would do what
  hotcell fleet run --workers 5                set the workers to it
  hotcell fleet status --watch                 in another terminal
  hotcell fleet logs 0 --follow
  hotcell fleet merge                          carry the result into your branch

Also as \`mahabharatha …\`, and run as \`kurukshetra\`. Every command explains itself with --help.
The feature is that of --feature, of MAHABHARATHA_FEATURE, the one that was planned last, or the only one there is.`;

/** `hotcell fleet …`, also `mahabharatha …`: agents that work on one repository in parallel. */
export function addFleetCommands(parent: Command, context: CommandContext): void {
  parent.commandsGroup('Prepare:');
  addFleetInitCommand(parent, context);
  addFleetBuildCommand(parent, context);
  addFleetPlanCommand(parent, context);
  addFleetDesignCommand(parent, context);
  parent.commandsGroup('Work:');
  addFleetRunCommand(parent, context);
  addFleetResumeCommand(parent, context);
  addFleetStopCommand(parent, context);
  addFleetRetryCommand(parent, context);
  addFleetMergeCommand(parent, context);
  addFleetCleanupCommand(parent, context);
  parent.commandsGroup('Watch:');
  addFleetStatusCommand(parent, context);
  addFleetLogsCommand(parent, context);
}
