import { Option, type Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../session/connect.ts';
import { DETACH_KEYS } from '../session/detach-keys.ts';
import { toWhole } from './session-life.ts';

const SHELL_EXAMPLES = `
Examples:
  hotcell session shell "$id"
  hotcell session shell "$id" --attach exec_5f0c2ab19d3e4c77
  hotcell session shell "$id" --command 'python3 -i app.py'

${DETACH_KEYS} leaves the terminal, which goes on; --attach comes back to it, also from elsewhere and
after a lost connection. Ctrl-] Ctrl-] types Ctrl-]. Ctrl-C and every other key go to the program.
The exit code is that of the shell, 0 after leaving it.`;

interface ShellOptions extends ConnectionOptions {
  readonly attach?: string;
  readonly command?: string;
}

export function addShellCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('shell')
    .description('open a shell in a session')
    .argument('<session>', 'its id')
    .option('--attach <exec>', 'come back to a terminal')
    .addOption(new Option('--command <line>', 'instead of a shell').conflicts('attach'))
    .addHelpText('after', SHELL_EXAMPLES)
    .action(async (sessionId: string, { attach, command: line, ...options }: ShellOptions) => {
      const { runShell } = await import('../session/shell.ts');
      const client = await connect(options, context);
      const wish = { sessionId, attach, command: line };
      context.outcome.exitCode = await runShell(client, wish, context.terminal);
    });
  addConnectionOptions(command);
}

const LOGS_EXAMPLES = `
Examples:
  hotcell session logs "$id"                             output of the latest command
  hotcell session logs "$id" exec_5f0c2ab19d3e4c77 --follow
  hotcell session logs "$id" --json | jq                 all commands and how they ended

Output is kept after the end of a command, and after a restart of the server. Ctrl-C ends the
reading, not the command.`;

interface LogsOptions extends ConnectionOptions {
  readonly follow?: true;
  readonly from: number;
}

export function addLogsCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('logs')
    .description('show the output of a command, also after its end')
    .argument('<session>', 'its id')
    .argument('[exec]', 'id of the command; the latest one unless given')
    .option('-f, --follow', 'go on until the command ends')
    .addOption(
      new Option('--from <byte>', 'first byte, counted through both streams').argParser(toWhole).default(0),
    )
    .addHelpText('after', LOGS_EXAMPLES)
    .action(async (sessionId: string, exec: string | undefined, options: LogsOptions) => {
      const { terminal } = context;
      const client = await connect(options, context);
      if (options.json === true) {
        terminal.json(
          exec === undefined ? await client.listExecs(sessionId) : await client.getExec(sessionId, exec),
        );
        return;
      }
      const { readLogs } = await import('../session/read-logs.ts');
      const { from, follow } = options;
      await readLogs(client, { sessionId, execId: exec, from, follow: follow === true }, terminal);
    });
  addConnectionOptions(command);
}

const KILL_EXAMPLES = `
Examples:
  hotcell session kill "$id"                             whatever runs in the foreground
  hotcell session kill "$id" exec_5f0c2ab19d3e4c77

Ends the command and everything it started. The session goes on; \`hotcell session rm\` ends it.`;

export function addKillCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('kill')
    .description('end a command of a session')
    .argument('<session>', 'its id')
    .argument('[exec]', 'id of the command; those in the foreground unless given')
    .addHelpText('after', KILL_EXAMPLES)
    .action(async (sessionId: string, exec: string | undefined, options: ConnectionOptions) => {
      const { terminal } = context;
      const client = await connect(options, context);
      const reply =
        exec === undefined ? await client.kill(sessionId) : await client.killExec(sessionId, exec);
      if (options.json === true) terminal.json(reply);
      else if (reply.killed) for (const id of reply.exec_ids) terminal.line(`ended ${id}`);
      else terminal.note('hotcell: nothing was running');
    });
  addConnectionOptions(command);
}
