import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { addSessionExecCommand } from './session-exec.ts';
import { addGetCommand, addPutCommand, addSyncCommand } from './session-files.ts';
import { addCreateCommand, addListCommand, addRemoveCommand } from './session-life.ts';
import { addKillCommand, addLogsCommand, addShellCommand } from './session-watch.ts';

const EXAMPLES = `
Examples:
  hotcell up &
  id=$(hotcell session create shop --runtime node)
  hotcell session sync "$id" ./shop
  hotcell session exec "$id" 'npm test'
  hotcell session shell "$id"
  hotcell session get "$id" coverage
  hotcell session rm "$id"

A session is a workspace and a shell in a cell of a running server (\`hotcell up\`). It keeps its
files and its folder between commands. The key of the server comes from HOTCELL_API_KEY.
Every command explains itself with --help and prints JSON with --json.`;

/** `hotcell session …`: a server's sessions from the command line. */
export function addSessionCommands(program: Command, context: CommandContext): void {
  const group = program
    .command('session')
    .description('work in a session of a running server: files, commands, a shell')
    .helpCommand(false)
    .addHelpText('after', EXAMPLES);
  group.commandsGroup('Sessions:');
  addCreateCommand(group, context);
  addListCommand(group, context);
  addRemoveCommand(group, context);
  group.commandsGroup('Commands:');
  addSessionExecCommand(group, context);
  addShellCommand(group, context);
  addLogsCommand(group, context);
  addKillCommand(group, context);
  group.commandsGroup('Files:');
  addSyncCommand(group, context);
  addPutCommand(group, context);
  addGetCommand(group, context);
}
