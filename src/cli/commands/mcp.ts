import type { Command } from 'commander';
import { makeTerminalLog } from '../terminal-log.ts';
import type { CommandContext } from '../program.ts';
import { addSettingsOptions, readSettings, type SettingsOptions } from '../settings-options.ts';

const EXAMPLES = `
A client starts this command and talks to it over stdin and stdout; by hand it only waits. In most clients:
  {"mcpServers": {"hotcell": {"command": "hotcell", "args": ["mcp"]}}}
  claude mcp add hotcell -- hotcell mcp

Examples:
  hotcell mcp                                    a confined process for every run
  hotcell mcp --mode container --driver docker   a container for every session
  EXECUTION_MODE=container hotcell mcp           the same as --mode container
  hotcell mcp --set mcp.limits.wallTimeMs=60s --set mcp.grantable.env=CI,NODE_ENV

It serves the tools run_code, get_run, cancel_run, and those for sessions, files, permissions and snippets.
It ends, and everything that it started, when the client closes stdin, and at SIGTERM and SIGINT.
stdout carries the protocol and nothing else; the log goes to stderr. A server (\`hotcell up\`) serves the same at /mcp.`;

interface Options extends SettingsOptions {
  readonly mode?: string;
}

export function addMcpCommand(program: Command, { terminal, outcome }: CommandContext): void {
  const command = program
    .command('mcp')
    .description('serve an AI client over stdin and stdout (Model Context Protocol)')
    .optionsGroup('Server:')
    .option(
      '--mode <name>',
      'preload (a confined process for every run) or container (a cell for every session)',
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const { config } = await readSettings(options, outcome);
      const [{ serveMcp }, { openConfiguredWorkbenches }] = await Promise.all([
        import('../../app/mcp/serve-mcp.ts'),
        import('../../app/mcp/open-workbenches.ts'),
      ]);
      const log = makeTerminalLog(config.logLevel, terminal);
      const parts = { workbenches: () => openConfiguredWorkbenches(config, log), log };
      await serveMcp(config, parts, { stdin: process.stdin, stdout: terminal.stdout });
    });
  addSettingsOptions(command);
}
