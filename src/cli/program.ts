import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addBuildCommand } from './commands/build.ts';
import { addConfigCommand } from './commands/config.ts';
import { addDoctorCommand } from './commands/doctor.ts';
import { addImagesCommand } from './commands/images.ts';
import { addLanguagesCommand } from './commands/languages.ts';
import { addMcpCommand } from './commands/mcp.ts';
import { addRunCommand } from './commands/run.ts';
import { addSessionCommands } from './commands/session.ts';
import { addUpCommand } from './commands/up.ts';
import type { Terminal } from './terminal.ts';

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
  hotcell doctor                        what protects here, and what would mend the rest

Exit codes: the program's own from \`run\` and \`session exec\` (124 after a timeout), 2 usage, 78 settings,
125 a failure of Hotcell's, 130 interrupted.`;

export function makeProgram(terminal: Terminal, outcome: Outcome): Command {
  const program = new Command('hotcell')
    .description(
      'Runs code that nobody has to trust, each piece in a cell of its own that is already booted.',
    )
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain the command')
    .addHelpCommand(
      new Command('help').argument('[command]').description('explain a command').helpGroup('Look around:'),
    )
    .addHelpText('after', EXAMPLES)
    .showSuggestionAfterError()
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      outputError: (text, write) => write(toUsageMessage(text)),
    });
  const context: CommandContext = { terminal, outcome };
  program.commandsGroup('Run code:');
  addRunCommand(program, context);
  addUpCommand(program, context);
  addSessionCommands(program, context);
  addMcpCommand(program, context);
  addBuildCommand(program, context);
  program.commandsGroup('Look around:');
  addDoctorCommand(program, context);
  addLanguagesCommand(program, context);
  addImagesCommand(program, context);
  addConfigCommand(program, context);
  return program;
}

/** Turns commander's words into ours: the message, then what to do about it. */
function toUsageMessage(text: string): string {
  const [message = '', suggestion] = text.trim().split('\n');
  const hint = suggestion?.replace(/^\(|\)$/g, '') ?? 'See hotcell --help.';
  return `hotcell: ${message.replace(/^error: /, '')}\n  → ${hint}\n`;
}

function readVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const isManifest = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return isManifest ? String(manifest.version) : 'unknown';
}
