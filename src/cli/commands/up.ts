import type { Command } from 'commander';
import type { CommandContext } from '../program.ts';
import { renderReady, toReadyJson } from '../render/ready.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';

const EXAMPLES = `
Examples:
  hotcell up                                     on http://127.0.0.1:8000, for this machine only
  HOTCELL_API_KEY=… hotcell up --host 0.0.0.0    for others, who send the key
  hotcell up --set limits.memoryBytes=512m --set pool.size=8

There is no flag for the API key: command lines can be read by every user of the machine.
Set HOTCELL_API_KEY, or apiKey in the settings file. SIGINT and SIGTERM stop gracefully.
Sessions go on without the server until the next one comes, and end by themselves if none does, unless they are
paused; with --on-stop end they end with it. \`hotcell down\` stops the server and ends all of them.`;

export function addUpCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('up')
    .alias('serve')
    .description('serve code execution over HTTP')
    .optionsGroup('Server:')
    .option('--host <address>', 'address to listen on; anything but loopback needs an API key')
    .option('--port <number>', 'port to listen on; 0 picks a free one')
    .option('--allow-anonymous', 'serve beyond loopback without a key')
    .option('--on-stop <keep|end>', 'what becomes of sessions when it stops (default: keep)')
    .option('--json', 'print one JSON object when ready')
    .addHelpText('after', EXAMPLES)
    .action(async (options: SettingsOptions) => {
      const { config } = await readSettings(options, outcome);
      const [{ serve }, { makeLog }] = await Promise.all([
        import('../../app/serve.ts'),
        import('../../app/make-log.ts'),
      ]);
      const { logFormat, logLevel } = config;
      const isForPeople = logFormat === 'text' || (logFormat === 'auto' && terminal.stderr.isTTY);
      const log = isForPeople ? makeTerminalLog(logLevel, terminal) : makeLog(logLevel);
      outcome.exitCode = await serve(config, {
        log,
        onProgress: (text) => terminal.note(`hotcell: ${text}`),
        onReady: (info) => {
          const { url, driver, reason, runtime, strategy } = info;
          // People are told below.
          if (!isForPeople) log.info({ url, driver, reason, runtime, strategy }, 'server ready');
          if (options.json === true) terminal.line(JSON.stringify(toReadyJson(info)));
          else
            terminal.line(
              renderReady(info, { needsKey: config.apiKey !== undefined, paint: terminal.paint }),
            );
        },
      });
    });
  addSettingsOptions(command);
}
