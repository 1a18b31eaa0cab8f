import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { addFleetBuildCommand } from './fleet-build.ts';
import { addFleetCleanupCommand } from './fleet-cleanup.ts';
import { addFleetDesignCommand } from './fleet-design.ts';
import { addFleetInitCommand } from './fleet-init.ts';
import { addFleetKurukshetraCommand } from './fleet-kurukshetra.ts';
import { addFleetLogsCommand } from './fleet-logs.ts';
import { addFleetMergeCommand } from './fleet-merge.ts';
import { addFleetPlanCommand } from './fleet-plan.ts';
import { addFleetResumeCommand } from './fleet-resume.ts';
import { addFleetRetryCommand } from './fleet-retry.ts';
import { addFleetStatusCommand } from './fleet-status.ts';
import { addFleetStopCommand } from './fleet-stop.ts';

export const FLEET_EXAMPLES = `
From an idea to a merged feature, in a git repository:
  mahabharatha init                            write .mahabharatha/config.yaml
  mahabharatha build                           make the image of the workers, once
  mahabharatha plan login 'users sign in with a passkey'
                                               write down what is wanted: .gsd/specs/login/requirements.md
  mahabharatha plan login --approve            when you have read it and agree
  mahabharatha design                          cut it into tasks: .gsd/specs/login/task-graph.json
  mahabharatha kurukshetra --dry-run           see who would do what
  mahabharatha kurukshetra --workers 5         set the workers to it
  mahabharatha status --watch                  in another terminal
  mahabharatha logs 0 --follow
  mahabharatha merge                           carry the result into your branch

Also as \`hotcell fleet …\`. Every command explains itself with --help.
The feature is that of --feature, of MAHABHARATHA_FEATURE, or the one that was planned last.`;

/** `mahabharatha …` and `hotcell fleet …`: agents that work on one repository in parallel. */
export function addFleetCommands(parent: Command, context: CommandContext): void {
  parent.commandsGroup('Prepare:');
  addFleetInitCommand(parent, context);
  addFleetBuildCommand(parent, context);
  addFleetPlanCommand(parent, context);
  addFleetDesignCommand(parent, context);
  parent.commandsGroup('Work:');
  addFleetKurukshetraCommand(parent, context);
  addFleetResumeCommand(parent, context);
  addFleetStopCommand(parent, context);
  addFleetRetryCommand(parent, context);
  addFleetMergeCommand(parent, context);
  addFleetCleanupCommand(parent, context);
  parent.commandsGroup('Watch:');
  addFleetStatusCommand(parent, context);
  addFleetLogsCommand(parent, context);
}
