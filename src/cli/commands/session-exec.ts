import { Option, type Command } from 'commander';
import type { ExecRequest } from '../../client/runner-client.ts';
import { usageError } from '../exit-codes.ts';
import type { CommandContext } from '../program.ts';
import { addConnectionOptions, connect, type ConnectionOptions } from '../session/connect.ts';
import { execCommand } from '../session/exec-command.ts';
import { isStdinPassed, readStdin, type Stdin } from '../session/read-stdin.ts';
import { toCommandLine } from '../session/shell-words.ts';
import { collectPairs } from '../settings-options.ts';
import { toWhole } from './session-life.ts';

const EXAMPLES = `
Examples:
  hotcell session exec "$id" 'cd src && ls | wc -l'
  hotcell session exec "$id" -- grep -r "it's" .
  hotcell session exec "$id" --background 'npm run dev'
  tar c photos | hotcell session exec "$id" 'tar x'

One word is a command line for bash, in which |, &&, $ and * mean what they always mean. Several
words are a program and its arguments, passed on exactly as they are; put -- before them.

The output comes as it is, the exit code is that of the command: 124 after a timeout, 128 + n after
signal n; 125 is a failure of Hotcell's or of the connection. Ctrl-C ends the command.
What is piped in becomes its stdin. Up to 1 MiB of text is read to its end first; anything else is
passed while the command runs, and the command then runs beside others, as with --background: it
does not wait for them, and a cd in it does not last. A connection that breaks is made again.`;

interface Options extends ConnectionOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly resetCwd?: true;
  readonly timeout?: number;
  readonly background?: true;
  readonly reject?: true;
  readonly interactive?: true;
  readonly stdin: boolean;
}

export function addSessionExecCommand(group: Command, context: CommandContext): void {
  const command = group
    .command('exec')
    .description('run a command in a session')
    .argument('<session>', 'its id')
    .argument('<command...>', 'one word: a command line; several: a program and its arguments')
    .addOption(
      new Option('-e, --env <name=value>', 'variable of the command, repeatable').argParser(collectPairs),
    )
    .option('--cwd <folder>', 'begin here; relative to the folder of the session')
    .option('--reset-cwd', 'begin in the workspace again')
    .addOption(new Option('--timeout <seconds>', 'time until it is ended (default: 600)').argParser(toWhole))
    .option('-b, --background', 'print its id and leave it running')
    .option('--reject', 'fail when another command runs, instead of waiting for its end')
    .option('-i, --interactive', 'pass stdin on as it comes')
    .option('-n, --no-stdin', 'pass no stdin on')
    .addHelpText('after', EXAMPLES)
    .action(async (sessionId: string, words: string[], options: Options) => {
      const { terminal, outcome } = context;
      const request = toRequest(words, options);
      const client = await connect(options, context);
      if (options.background === true) {
        const execId = await client.startBackground(sessionId, request);
        if (options.json === true) terminal.json({ exec_id: execId });
        else terminal.line(execId);
        if (terminal.stdout.isTTY) terminal.note(`  → hotcell session logs ${sessionId} ${execId} --follow`);
        return;
      }
      const input = await passedStdin(options, context);
      outcome.exitCode = await execCommand(
        client,
        {
          sessionId,
          request: input?.kind === 'text' ? { ...request, stdin: input.text } : request,
          input: input?.kind === 'stream' ? input.chunks : undefined,
          json: options.json === true,
        },
        terminal,
      );
    });
  addConnectionOptions(command);
}

function toRequest(words: readonly string[], options: Options): ExecRequest {
  const commandLine = toCommandLine(words);
  if (commandLine === '') throw usageError('the command is empty', "Name one, such as 'ls'.");
  return {
    command: commandLine,
    env: { ...options.env },
    reset_cwd: options.resetCwd === true,
    on_busy: options.reject === true ? 'reject' : 'wait',
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(options.timeout === undefined ? {} : { timeout_s: options.timeout }),
  };
}

async function passedStdin(options: Options, { terminal }: CommandContext): Promise<Stdin | undefined> {
  if (options.interactive === true) {
    if (options.json === true) throw usageError('--json tells the end, -i takes part', 'Use one of them.');
    return { kind: 'stream', chunks: process.stdin };
  }
  if (!options.stdin || !isStdinPassed()) return undefined;
  const input = await readStdin(process.stdin, terminal);
  if (input.kind === 'text' && input.text === '') return undefined;
  if (input.kind === 'stream' && options.json === true) {
    throw usageError('stdin is too long or no text, and --json needs all of it at once', 'Leave --json out.');
  }
  return input;
}
