import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addBuildCommand } from './commands/build.ts';
import { addConfigCommand } from './commands/config.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addDownCommand } from './commands/down.ts';
import { FLEET_EXAMPLES, addFleetCommands } from './commands/fleet.ts';
import { addImagesCommand } from './commands/images.ts';
import { addLanguagesCommand } from './commands/languages.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addRunCommand } from './commands/run.ts';
import { addSessionCommands } from './commands/session.ts';
import { addUpCommand } from './commands/up.ts';
import type { Terminal } from './terminal.ts';

/** The two names under which people start us. */
export const PROGRAM = 'hotcell';
export const FLEET_PROGRAM = 'mahabharatha';

/** What a command leaves behind for `main`. */
export interface Outcome {
  exitCode: number;
  /** Show stack traces: the log level is `debug`. */
  debug: boolean;
}

export interface CommandContext {
  readonly terminal: Terminal;
  readonly outcome: Outcome;
}

const EXAMPLES = `
Examples:
  hotcell run hello.py                  run a file in a cell of its own, without a server
  echo 'puts 6 * 7' | hotcell run - --language ruby
  hotcell up                            serve HTTP on http://127.0.0.1:8000, docs at /docs
  hotcell up --port 9000 --set pool.size=8
  hotcell session create shop --runtime node
  hotcell mcp                           serve an AI client over stdin and stdout
  hotcell fleet --help                  agents in parallel, each in a cell and a worktree
  hotcell doctor                        what protects here, and what would mend the rest

Exit codes: the program's own from \`run\` and \`session exec\` (124 after a timeout), 2 usage, 78 settings,
125 a failure of Hotcell's, 130 interrupted.`;

export function makeProgram(terminal: Terminal, outcome: Outcome): Command {
  const program = makeTop(PROGRAM, terminal)
    .description(
      'Runs code that nobody has to trust, each piece in a cell of its own that is already booted.',
    )
    .addHelpText('after', EXAMPLES);
  const context: CommandContext = { terminal, outcome };
  program.commandsGroup('Run code:');
  addRunCommand(program, context);
  addUpCommand(program, context);
  addDownCommand(program, context);
  addSessionCommands(program, context);
  addMcpCommand(program, context);
  addFleetGroup(program, context);
  addBuildCommand(program, context);
  program.commandsGroup('Look around:');
  addDoctorCommand(program, context);
  addLanguagesCommand(program, context);
  addImagesCommand(program, context);
  addConfigCommand(program, context);
  return program;
}

const FLEET = 'works on a task graph with agents in parallel, each in a cell and a git worktree of its own';

/** The same commands as `hotcell fleet`, under the name that some users know. */
export function makeFleetProgram(terminal: Terminal, outcome: Outcome): Command {
  const program = makeTop(FLEET_PROGRAM, terminal)
    .description(`${FLEET[0]?.toUpperCase()}${FLEET.slice(1)}.`)
    .addHelpText('after', FLEET_EXAMPLES);
  addFleetCommands(program, { terminal, outcome });
  return program;
}

function addFleetGroup(program: Command, context: CommandContext): void {
  const group = program
    .command('fleet')
    .description(FLEET)
    .helpCommand(false)
    .addHelpText('after', FLEET_EXAMPLES);
  addFleetCommands(group, context);
}

function makeTop(name: string, terminal: Terminal): Command {
  return new Command(name)
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain the command')
    .addHelpCommand(
      new Command('help').argument('[command]').description('explain a command').helpGroup('Look around:'),
    )
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(toUsageMessage(text, name)),
    });
}

/** Turns commander's words into ours: the message, then what to do about it. */
function toUsageMessage(text: string, program: string): string {
  const [message = '', suggestion] = text.trim().split('\n');
  const hint = suggestion?.replace(/^\(|\)$/g, '') ?? `See ${program} --help.`;
  return `${program}: ${message.replace(/^error: /, '')}\n  → ${hint}\n`;
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isManifest ? String(manifest.version) : 'unknown';
}
