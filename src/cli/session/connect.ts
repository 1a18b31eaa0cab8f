import type { Command } from 'commander';
import type { HttpRunnerClient } from '../../client/http-runner-client.ts';
import type { RetryNotice } from '../../client/http-transport.ts';
import { usageError } from '../exit-codes.ts';
import type { CommandContext } from '../program.ts';
import { toPrintable } from '../../lib/printable.ts';
import { readSettings } from '../settings-options.ts';
import type { Terminal } from '../terminal.ts';

export interface ConnectionOptions {
  readonly url?: string;
  readonly config?: string;
  readonly json?: true;
}

const NOTICE_EVERY_MS = 5000;

/** What every command that talks to a server accepts. */
export function addConnectionOptions(command: Command): Command {
  return command
    .optionsGroup('Server:')
    .option('--url <address>', 'where it is (default: host and port of the settings, http://127.0.0.1:8000)')
    .option('--config <file>', 'settings file (default: ./hotcell.yaml, then /etc/hotcell/hotcell.yaml)')
    .option('--json', 'print JSON');
}

/** A client for the server that the settings and flags name. The key comes from HOTCELL_API_KEY or the settings file. */
export async function connect(
  options: ConnectionOptions,
  { terminal, outcome }: CommandContext,
): Promise<HttpRunnerClient> {
  const { config } = await readSettings({ config: options.config }, outcome);
  const { HttpRunnerClient: Client } = await import('../../client/http-runner-client.ts');
  return new Client({
    baseUrl: options.url === undefined ? toUrl(config.host, config.port) : requireUrl(options.url),
    apiKey: config.apiKey,
    onRetry: makeRetryNotes(terminal),
  });
}

/** Where a server that listens on this address can be reached from here. */
function toUrl(host: string, port: number): string {
  const reachable = new Map([
    ['0.0.0.0', '127.0.0.1'],
    ['::', '::1'],
  ]);
  const name = reachable.get(host) ?? host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

function requireUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url?.search === '' && url.hash === '' && url.username === '' && url.password === '';
  if (!isPlain || !/^https?:$/.test(url?.protocol ?? '')) {
    throw usageError(`--url ${text} is not the address of a server`, 'Write it as http://127.0.0.1:8000.');
  }
  return text;
}

function makeRetryNotes(terminal: Terminal): (notice: RetryNotice) => void {
  let saidAt = -Infinity;
  return ({ error }) => {
    const now = Date.now();
    if (now - saidAt < NOTICE_EVERY_MS) return;
    saidAt = now;
    terminal.note(`hotcell: ${toPrintable(error.message)}; trying again`);
  };
}
