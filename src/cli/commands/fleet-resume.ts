import type { Command } from 'commander';
import { leadFleet, type LeadOptions } from '../fleet/lead-fleet.ts';
import type { CommandContext } from '../program.ts';
import { addLeadOptions } from './fleet-run.ts';

const EXAMPLES = `
Examples:
  hotcell fleet resume
  hotcell fleet resume --feature login --workers 2

Goes on from the state and from git: after a stop, a crash, a conflict that you have resolved, a check that you
have mended, or \`hotcell fleet retry\`. What is committed is never done again.`;

export function addFleetResumeCommand(parent: Command, context: CommandContext): void {
  const command = parent
    .command('resume')
    .description('go on with a feature that was begun')
    .addHelpText('after', EXAMPLES)
    .action((options: LeadOptions) => leadFleet(context, options, true));
  addLeadOptions(command);
}
