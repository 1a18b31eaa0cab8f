import { Option, type Command } from 'commander';
import type { CommandContext } from '../program.ts';
import {
  addSettingsOptions,
  collect,
  collectPairs,
  readSettings,
  type SettingsOptions,
} from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell run hello.py
  hotcell run sum.rb --timeout 5s --memory 512m -- 1 2 3
  hotcell run report.py --file data/july.csv --env REGION=north --stdin notes.txt
  echo 'console.log(6 * 7)' | hotcell run - --language javascript

The code sees no network, none of your files but those you name, and a /tmp of its own.
Arguments after -- are the program's. The exit code is the program's too: 124 after a timeout,
128 + n after signal n; 125 is a failure of Hotcell's, 130 an interruption by you.`;

export interface RunOptions extends SettingsOptions {
  readonly language?: string;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly file?: readonly string[];
}

export function addRunCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('run')
    .description('run one file in a cell of its own, without a server')
    .argument('<file>', 'the code; - reads it from stdin')
    .argument('[args...]', 'arguments of the program, best after --')
    .option('--json', 'print the result as one JSON object instead of the output as it comes')
    .optionsGroup('The program:')
    .option('-l, --language <name>', 'by the extension of the file unless given')
    .option('--stdin <file>', 'what the program reads from its standard input; - passes ours on')
    .addOption(
      new Option('-e, --env <name=value>', 'variable of the program, repeatable').argParser(collectPairs),
    )
    .addOption(
      new Option(
        '-f, --file <path>',
        'another file, laid beside the code under the same relative path, repeatable',
      ).argParser(collect),
    )
    .optionsGroup('Limits:')
    .option('--timeout <time>', 'time until it is killed, such as 500ms, 5s or 2min')
    .option('--memory <size>', 'most memory, such as 256m or 1g')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, args: string[], options: RunOptions) => {
      const { config, origins } = await readSettings(options, context.outcome);
      const { runOnce } = await import('../run-once.ts');
      // The log of a single run is for those who ask for it; the program's own output has the terminal.
      const logLevel = origins['logLevel'] === 'default' ? 'error' : config.logLevel;
      context.outcome.exitCode = await runOnce(
        { ...config, logLevel },
        { file, args, options },
        context.terminal,
      );
    });
  addSettingsOptions(command);
}
