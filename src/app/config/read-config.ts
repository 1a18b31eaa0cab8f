import { HotcellError } from '../../core/errors.ts';
import { Config } from './config.ts';
import { SECTIONS, SETTINGS, type Origin, type Setting } from './config-keys.ts';
import { describeIssues, shown } from './config-problems.ts';
import { didYouMean } from './nearest-name.ts';
import { isMapping, readConfigFile, type ConfigFile } from './read-config-file.ts';
import { parseSettingText } from './setting-text.ts';

export interface ConfigInput {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Values by key path; text is read as the environment's is. */
  readonly flags: Readonly<Record<string, unknown>>;
  /** What the user typed for a key path, such as `--timeout`; otherwise `--set <path>`. */
  readonly flagNames?: Readonly<Record<string, string>>;
  readonly configFile?: string;
}

export interface ReadConfig {
  readonly config: Config;
  /** Where the value of each key path came from. */
  readonly origins: Readonly<Record<string, Origin>>;
}

interface Given {
  readonly value: unknown;
  readonly origin: Origin;
}

/**
 * Reads defaults, file, environment and flags, the later winning.
 * Throws one CONFIG_INVALID that names every problem of every source.
 */
export function readConfig(input: ConfigInput): ReadConfig {
  const problems: string[] = [];
  const given = new Map<string, Given>();
  const file = readConfigFile(input.cwd, input.configFile);
  if (file !== undefined) readMapping(file, file.content, '', { given, problems });
  readEnvironment(input.env, given, problems);
  readFlags(input, given, problems);

  const parsed = Config.safeParse(toNested(given));
  if (!parsed.success) {
    problems.push(...describeIssues(parsed.error.issues, (path) => given.get(path)));
  }
  if (problems.length > 0 || !parsed.success) throw toError(problems);
  const origins = [...SETTINGS.keys()].map((path) => [path, given.get(path)?.origin ?? 'default'] as const);
  return { config: parsed.data, origins: Object.fromEntries(origins) };
}

/** For the doors that a person starts: only this folder may look at the environment. */
export function readConfigFromProcess(
  flags: ConfigInput['flags'],
  configFile?: string,
  flagNames?: ConfigInput['flagNames'],
): ReadConfig {
  return readConfig({
    env: process.env,
    cwd: process.cwd(),
    flags,
    ...(configFile === undefined ? {} : { configFile }),
    ...(flagNames === undefined ? {} : { flagNames }),
  });
}

/** Names that are not ours, and the settings that they stand for. They win over our own name. */
const ALIASES: ReadonlyMap<string, string> = new Map([['EXECUTION_MODE', 'mcp.mode']]);

interface Collected {
  readonly given: Map<string, Given>;
  readonly problems: string[];
}

function readMapping(
  file: ConfigFile,
  mapping: ConfigFile['content'],
  prefix: string,
  into: Collected,
): void {
  const source = `file ${file.path}` as const;
  for (const [key, value] of Object.entries(mapping)) {
    const path = prefix + key;
    const setting = SETTINGS.get(path);
    if (setting !== undefined) {
      if (into.given.has(path)) into.problems.push(`${source}: ${path}: is given twice`);
      // Numbers may carry their unit in the file too, where YAML sees them as text.
      const isQuantity = setting.kind === 'bytes' || setting.kind === 'milliseconds';
      if (isQuantity && typeof value === 'string') {
        readText({ setting, text: value, origin: source, name: `${source}: ${path}` }, into);
      } else {
        into.given.set(path, { value, origin: source });
      }
    } else if (!SECTIONS.has(path)) {
      into.problems.push(`${source}: ${path}: unknown key${didYouMean(path, [...SETTINGS.keys()])}`);
    } else if (isMapping(value)) {
      readMapping(file, value, `${path}.`, into);
    } else if (value !== null) {
      into.problems.push(`${source}: ${path}: must be a mapping of settings, not ${shown(value)}`);
    }
  }
}

function readEnvironment(env: ConfigInput['env'], given: Map<string, Given>, problems: string[]): void {
  const byName = new Map([...SETTINGS.values()].map((setting) => [setting.environmentName, setting]));
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith('HOTCELL_') || text === undefined) continue;
    const setting = byName.get(name);
    if (setting === undefined) {
      problems.push(`environment ${name}: unknown variable${didYouMean(name, [...byName.keys()])}`);
    } else {
      const origin = `environment ${name}` as const;
      readText({ setting, text, origin, name: origin }, { given, problems });
    }
  }
  for (const [name, path] of ALIASES) {
    const [text, setting] = [env[name], SETTINGS.get(path)];
    const origin = `environment ${name}` as const;
    if (text !== undefined && setting !== undefined)
      readText({ setting, text, origin, name: origin }, { given, problems });
  }
}

function readFlags(input: ConfigInput, given: Map<string, Given>, problems: string[]): void {
  for (const [path, value] of Object.entries(input.flags)) {
    if (value === undefined) continue;
    const origin = `flag ${input.flagNames?.[path] ?? `--set ${path}`}` as const;
    const setting = SETTINGS.get(path);
    if (setting === undefined) {
      problems.push(`${origin}: unknown key${didYouMean(path, [...SETTINGS.keys()])}`);
    } else if (typeof value === 'string') {
      readText({ setting, text: value, origin, name: origin }, { given, problems });
    } else {
      given.set(path, { value, origin });
    }
  }
}

function readText(
  source: { setting: Setting; text: string; origin: Origin; name: string },
  into: Collected,
): void {
  const { setting, text, origin, name } = source;
  const parsed = parseSettingText(setting.kind, text);
  if (parsed.ok) {
    into.given.set(setting.path, { value: parsed.value, origin });
  } else {
    into.given.delete(setting.path);
    into.problems.push(`${name}: ${parsed.problem}${setting.secret ? '' : `, not ${shown(text)}`}`);
  }
}

function toNested(given: ReadonlyMap<string, Given>): Record<string, unknown> {
  const top: Record<string, unknown> = {};
  for (const [path, { value }] of given) {
    const sections = path.split('.');
    const key = sections.pop() ?? path;
    let place = top;
    for (const section of sections) {
      const below = place[section];
      const next = isMapping(below) ? below : {};
      place[section] = next;
      place = next;
    }
    place[key] = value;
  }
  return top;
}

function toError(problems: readonly string[]): HotcellError {
  const message =
    problems.length === 1
      ? (problems[0] ?? '')
      : [`${problems.length} settings are wrong:`, ...problems.map((problem) => `  ${problem}`)].join('\n');
  return new HotcellError('CONFIG_INVALID', message, {
    hint: 'Correct what is named; `hotcell config --keys` lists every setting.',
  });
}
