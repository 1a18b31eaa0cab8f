import type { Command } from 'commander';
import { leadFleet, type LeadOptions } from '../fleet/lead-fleet.ts';
import type { CommandContext } from '../program.ts';
import { addLeadOptions } from './fleet-kurukshetra.ts';

const EXAMPLES = `
Examples:
  mahabharatha resume
  mahabharatha resume --feature login --workers 2

Goes on from the state and from git: after a stop, a crash, a conflict that you have resolved, a gate that you
have mended, or \`mahabharatha retry\`. What is committed is never done again.`;

export function addFleetResumeCommand(parent: Command, context: CommandContext): void {
  const command = parent
    .command('resume')
    .description('go on with a feature that was begun')
    .addHelpText('after', EXAMPLES)
    .action((options: LeadOptions) => leadFleet(context, options, true));
  addLeadOptions(command);
}
