import { InvalidArgumentError, Option, type Command } from 'commander';
import { ALL_DRIVERS } from '../app/drivers/driver-choices.ts';
import type { ReadConfig } from '../app/config/read-config.ts';
import { usageError } from './exit-codes.ts';
import type { Outcome } from './program.ts';

/** What every command that reads settings accepts. */
export interface SettingsOptions {
  readonly config?: string | undefined;
  readonly set?: Readonly<Record<string, string>>;
  readonly logLevel?: string;
  readonly driver?: string;
  readonly runtime?: string;
  readonly strategy?: string;
  readonly weaker?: string | undefined;
  readonly json?: true;
}

/** Flags that are another name for a setting, by the option's own name. */
const SETTING_OF_OPTION: Readonly<Record<string, { readonly path: string; readonly flag: string }>> = {
  host: { path: 'host', flag: '--host' },
  port: { path: 'port', flag: '--port' },
  onStop: { path: 'sessions.onStop', flag: '--on-stop' },
  allowAnonymous: { path: 'allowAnonymous', flag: '--allow-anonymous' },
  driver: { path: 'driver', flag: '--driver' },
  runtime: { path: 'runtime', flag: '--runtime' },
  strategy: { path: 'strategy', flag: '--strategy' },
  weaker: { path: 'weaker', flag: '--weaker' },
  logLevel: { path: 'logLevel', flag: '--log-level' },
  mode: { path: 'mcp.mode', flag: '--mode' },
  timeout: { path: 'limits.wallTimeMs', flag: '--timeout' },
  memory: { path: 'limits.memoryBytes', flag: '--memory' },
};

export const WEAKER = [
  '--weaker <promises>',
  'give up these promises by name where nobody can keep them, comma separated',
] as const;

export function addSettingsOptions(command: Command): Command {
  return command
    .optionsGroup('Isolation:')
    .option('--driver <name>', `what makes the cells: auto, ${ALL_DRIVERS}`)
    .option('--strategy <name>', 'auto, fresh (a cell for every run) or shared (one per language)')
    .option('--runtime <name>', 'OCI runtime: auto, crun, runc or runsc')
    .option(...WEAKER)
    .optionsGroup('Settings:')
    .option('--config <file>', 'settings file (default: ./hotcell.yaml, then /etc/hotcell/hotcell.yaml)')
    .addOption(
      new Option(
        '--set <key=value>',
        'any other setting, repeatable; `hotcell config --keys` lists them',
      ).argParser(collectPairs),
    )
    .option('--log-level <level>', 'debug, info, warn, error or silent');
}

/** Collects repeated `name=value` options. */
export function collectPairs(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const cut = text.indexOf('=');
  if (cut < 1) throw new InvalidArgumentError('Write it as name=value.');
  return { ...before, [text.slice(0, cut)]: text.slice(cut + 1) };
}

/** Collects repeated options. */
export function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** Reads file, environment and flags. Loads the schema only now: `--help` and `--version` need none of it. */
export async function readSettings(options: SettingsOptions, outcome: Outcome): Promise<ReadConfig> {
  if (options.set !== undefined && 'apiKey' in options.set) {
    throw usageError(
      'apiKey cannot be set on the command line, where every user of this machine can read it',
      'Set HOTCELL_API_KEY, or apiKey in the settings file.',
    );
  }
  const flags: Record<string, unknown> = { ...options.set };
  const flagNames: Record<string, string> = {};
  for (const [name, value] of Object.entries(options)) {
    const setting = SETTING_OF_OPTION[name];
    if (setting === undefined || value === undefined) continue;
    flags[setting.path] = value;
    flagNames[setting.path] = setting.flag;
  }
  const { readConfigFromProcess } = await import('../app/config/read-config.ts');
  const read = readConfigFromProcess(flags, options.config, flagNames);
  outcome.debug = read.config.logLevel === 'debug';
  return read;
}
