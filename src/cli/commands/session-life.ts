import { InvalidArgumentError, Option, type Command } from 'commander';
import type { RuntimeType, SessionReply } from '../../wire/sessions.ts';
import type { CommandContext } from '../program.ts';
import { renderTable } from '../render/table.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../session/connect.ts';
import type { SessionWish } from '../session/session-wish.ts';
import { collectPairs } from '../settings-options.ts';
import { SlowNote } from '../slow-note.ts';

interface CreateOptions extends ConnectionOptions, SessionWish {
  readonly runtime: RuntimeType;
}

/** Written out, because help must not wait for the schemas. */
const RUNTIMES: readonly RuntimeType[] = ['node', 'python', 'shell'];

const CREATE_EXAMPLES = `
Examples:
  hotcell session create shop --runtime node --network=npm,api.example.org --setup
  id=$(hotcell session create notes --limit memory_mb=512 --limit disk_mb=1024)

Prints the id of the session, and nothing else on stdout. The project names the workspace, and its
dependencies come back in the next session of the same project. The id is a secret: whoever has
it, and the key of the server, can use the session.`;

export function addCreateCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('create')
    .description('make a session and print its id')
    .argument('<project>', 'letters, digits, _, - and .')
    .addOption(
      new Option('-r, --runtime <name>', 'programs of the session').choices(RUNTIMES).default('shell'),
    )
    .option(
      '--network [hosts]',
      "hosts it may reach, comma separated, also npm, pypi, github; the operator's list unless given",
    )
    .option('--user <name>', 'whose session it is')
    .addOption(new Option('--ttl <seconds>', 'time without a request until it ends').argParser(toWhole))
    .option('--setup', 'run npm install or pip install when the list of dependencies has changed')
    .option('--dotenv', 'load .env of the workspace into every command')
    .addOption(
      new Option('--limit <name=value>', 'cpus, memory_mb, disk_mb or processes, repeatable').argParser(
        collectPairs,
      ),
    )
    .addHelpText('after', CREATE_EXAMPLES)
    .action(async (project: string, options: CreateOptions) => {
      const { terminal } = context;
      const { toSessionOptions } = await import('../session/session-wish.ts');
      const wishes = toSessionOptions(options);
      const client = await connect(options, context);
      using slow = new SlowNote(terminal);
      slow.tell(() => 'makes a session');
      const session = await client.createSession(project, options.runtime, wishes);
      if (options.json === true) terminal.json(session);
      else terminal.line(session.session_id);
      if (terminal.stdout.isTTY)
        terminal.note(`  → hotcell session exec ${session.session_id} '${session.default_command}'`);
    });
  addConnectionOptions(command);
}

export function toWhole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Write a whole number.');
  return Number(text);
}

const LIST_EXAMPLES = `
Examples:
  hotcell session list
  hotcell session list --json | jq -r '.[].session_id'`;

export function addListCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('list')
    .alias('ls')
    .description('list your sessions')
    .addHelpText('after', LIST_EXAMPLES)
    .action(async (options: ConnectionOptions) => {
      const { terminal } = context;
      const client = await connect(options, context);
      const sessions = await client.listSessions();
      if (options.json === true) terminal.json(sessions);
      else if (sessions.length > 0) {
        const heading = ['SESSION', 'PROJECT', 'USER', 'RUNTIME', 'STATE', 'NETWORK', 'ENDS UNLESS USED'];
        terminal.line(renderTable([heading, ...sessions.map(toRow)]));
      } else {
        terminal.note('hotcell: there are no sessions');
        terminal.note('  → Make one with hotcell session create PROJECT');
      }
    });
  addConnectionOptions(command);
}

function toRow(session: SessionReply): string[] {
  return [
    session.session_id,
    session.project_id,
    session.user_id ?? '',
    session.runtime_type,
    session.expires_soon ? `${session.state}, ends soon` : session.state,
    session.network.length === 0 ? 'none' : `${session.network.length} hosts`,
    session.expires_at,
  ];
}

const REMOVE_EXAMPLES = `
Examples:
  hotcell session rm "$id"

Ends the session: its commands, its cell, its files. Dependencies of the project (node_modules,
.venv, caches) are kept for the next session where the server has volumes.`;

export function addRemoveCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('rm')
    .description('end sessions and everything in them')
    .argument('<session...>', 'their ids')
    .addHelpText('after', REMOVE_EXAMPLES)
    .action(async (ids: string[], options: ConnectionOptions) => {
      const { terminal } = context;
      const client = await connect(options, context);
      using slow = new SlowNote(terminal);
      slow.tell(() => 'ends the session');
      for (const id of ids) {
        await client.destroySession(id);
        if (options.json !== true) terminal.line(`ended ${id}`);
      }
      if (options.json === true) terminal.json({ destroyed: ids });
    });
  addConnectionOptions(command);
}
