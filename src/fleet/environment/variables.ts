import { isAbsolute } from 'node:path';
import { matchesStars } from '../../lib/match-stars.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { Environment } from '../fleet-machine.ts';
import { PLAIN_MODE, type FleetMode } from '../fleet-site.ts';

/** What workers get of the caller's environment without being asked, by name or with `*`. */
const USUAL_VARIABLES: readonly string[] = [
  // Where and how programs run.
  'CI',
  'DEBUG',
  'VERBOSE',
  'LOG_LEVEL',
  'NODE_ENV',
  'RUST_LOG',
  'RUST_BACKTRACE',
  'PYTHONUNBUFFERED',
  'PYTHONDONTWRITEBYTECODE',
  'SOURCE_DATE_EPOCH',
  // Language, time and colours.
  'LANG',
  'LANGUAGE',
  'LC_*',
  'TZ',
  'TERM',
  'COLORTERM',
  'NO_COLOR',
  'FORCE_COLOR',
  'CLICOLOR',
  'CLICOLOR_FORCE',
  // Ours.
  'MAHABHARATHA_*',
  // Settings of the agent that are no credentials.
  'ANTHROPIC_MODEL',
  'ANTHROPIC_SMALL_FAST_MODEL',
  'ANTHROPIC_DEFAULT_*_MODEL',
  'ANTHROPIC_BASE_URL',
  'ANTHROPIC_BETAS',
  'ANTHROPIC_LOG',
  'API_TIMEOUT_MS',
  'BASH_DEFAULT_TIMEOUT_MS',
  'BASH_MAX_TIMEOUT_MS',
  'BASH_MAX_OUTPUT_LENGTH',
  'CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR',
  'CLAUDE_CODE_DISABLE_*',
  'CLAUDE_CODE_EFFORT_LEVEL',
  'CLAUDE_CODE_MAX_*',
  'CLAUDE_CODE_SUBAGENT_MODEL',
  'DISABLE_AUTOUPDATER',
  'DISABLE_ERROR_REPORTING',
  'DISABLE_PROMPT_CACHING*',
  'DISABLE_TELEMETRY',
  'MAX_THINKING_TOKENS',
  'MAX_MCP_OUTPUT_TOKENS',
];

/**
 * What no worker gets, whatever is allowed, in capitals. SECURITY: these choose the programs that run, are read before
 * anything else by shells and interpreters, name places of the host, or are set by us.
 */
const BLOCKED: readonly string[] = [
  'PATH',
  'HOME',
  'SHELL',
  'USER',
  'LOGNAME',
  'PWD',
  'OLDPWD',
  'TMPDIR',
  'TMP',
  'TEMP',
  'TEMPDIR',
  'XDG_*',
  'LD_*',
  'DYLD_*',
  'GLIBC_TUNABLES',
  'MALLOC_*',
  'GCONV_PATH',
  'LOCPATH',
  'BASH_ENV',
  'BASH_FUNC_*',
  'BASHOPTS',
  'SHELLOPTS',
  'PROMPT_COMMAND',
  'ENV',
  'IFS',
  'PS4',
  'PYTHONPATH',
  'PYTHONHOME',
  'PYTHONSTARTUP',
  'PYTHONINSPECT',
  'NODE_OPTIONS',
  'NODE_PATH',
  'NODE_REPL_EXTERNAL_MODULE',
  'NODE_EXTRA_CA_CERTS',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'BUN_OPTIONS',
  'NPM_CONFIG_*',
  'PIP_*',
  'PERL5LIB',
  'PERL5OPT',
  'PERL5DB',
  'PERLLIB',
  'RUBYLIB',
  'RUBYOPT',
  'JAVA_TOOL_OPTIONS',
  '_JAVA_OPTIONS',
  'JDK_JAVA_OPTIONS',
  'CLASSPATH',
  'GIT_*',
  'SSH_*',
  'GPG_*',
  'EDITOR',
  'VISUAL',
  'PAGER',
  'BROWSER',
  '*_PROXY',
  'SSL_CERT_*',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'DOCKER_*',
  'KUBECONFIG',
  'DBUS_*',
  'HOTCELL_*',
];

/**
 * What plain processes get all the same, in capitals: programs and the network are for them as this machine has them, and
 * no gate is between. They could read it anyway, since they are the caller.
 */
const PLAIN_VARIABLES: readonly string[] = [
  'PATH',
  '*_PROXY',
  'NPM_CONFIG_NOPROXY',
  'SSL_CERT_*',
  'NODE_EXTRA_CA_CERTS',
  'REQUESTS_CA_BUNDLE',
  'CURL_CA_BUNDLE',
  'AWS_CA_BUNDLE',
  'GIT_SSL_CAINFO',
  'GIT_SSL_CAPATH',
  'NPM_CONFIG_CAFILE',
  'NPM_CONFIG_REGISTRY',
  'PIP_CERT',
  'PIP_INDEX_URL',
];

/** Credentials that reach the agent in another way, or not at all. */
const CREDENTIALS: readonly string[] = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'ANTHROPIC_CUSTOM_HEADERS',
  'CLAUDE_CODE_OAUTH_*',
];

/** By its name it holds something secret. Numbers of tokens are none. */
const SECRET_NAME =
  /(?:KEY|KEY_ID|TOKEN|(?:^|_)(?:PASS|PWD|AUTH|COOKIE|DSN|PAT|CERT|PIN))$|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE/i;
/** A name and a password before the host. */
const URL_WITH_PASSWORD = /:\/\/[^/?#\s]*:[^/?#\s]*@/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/;
/** Linux starts no program with a longer one. */
const LONGEST_VALUE = 128 * 1024 - 512;
const MOST_CHARACTERS = 512 * 1024;

export interface EnvironmentWish {
  readonly environment: Pick<FleetConfig['environment'], 'allow'>;
  readonly credentials: Pick<FleetConfig['credentials'], 'api_key_variable'>;
}

export interface FilteredEnvironment {
  readonly kept: Readonly<Record<string, string>>;
  /** Names only, sorted. */
  readonly dropped: readonly string[];
}

/**
 * What workers get of the caller's environment. Values are passed as data and no shell reads them, so every character is
 * fine in them. What looks like a secret is passed only if it is allowed by its very name, without a star.
 */
export function filterEnvironment(
  env: Environment,
  { environment: { allow }, credentials: { api_key_variable: key } }: EnvironmentWish,
  mode: FleetMode = 'container',
): FilteredEnvironment {
  const kept: [string, string][] = [];
  const dropped: string[] = [];
  let characters = 0;
  for (const name of Object.keys(env).toSorted()) {
    const value = env[name];
    if (value === undefined) continue;
    const isPlain = mode === PLAIN_MODE && name !== key && matchesCapitals(PLAIN_VARIABLES, name);
    const isKept =
      (isPlain || (isAllowed(name, allow) && !matchesCapitals([...BLOCKED, ...CREDENTIALS, key], name))) &&
      canBePassed(name, value) &&
      // A proxy with a password is of no use without it.
      (!URL_WITH_PASSWORD.test(value) || (isPlain && matchesCapitals(['*_PROXY'], name))) &&
      characters + value.length <= MOST_CHARACTERS;
    if (isKept) {
      kept.push([name, isPlain && name === 'PATH' ? toPlainPath(value) : value]);
      characters += value.length;
    } else dropped.push(name);
  }
  return { kept: Object.fromEntries(kept), dropped };
}

function isAllowed(name: string, allow: readonly string[]): boolean {
  if (allow.includes(name) || USUAL_VARIABLES.includes(name)) return true;
  return !SECRET_NAME.test(name) && [...USUAL_VARIABLES, ...allow].some((one) => matchesStars(one, name));
}

/** SECURITY: proxies, for one, are read in capitals and in small letters. */
function matchesCapitals(names: readonly string[], name: string): boolean {
  const capitals = name.toUpperCase();
  return names.some((one) => matchesStars(one, capitals));
}

/** What is relative would mean the worktree, which agents write to. Last the programs that come with us. */
function toPlainPath(path: string): string {
  return [...path.split(':').filter((folder) => isAbsolute(folder)), '{tools}'].join(':');
}

function canBePassed(name: string, value: string): boolean {
  return (
    NAME.test(name) &&
    name !== '__proto__' &&
    value.length <= LONGEST_VALUE &&
    !value.includes('\0') &&
    value.isWellFormed()
  );
}

const MOST_NAMED = 20;
const LONGEST_NAMED = 64;

/** For people: a sentence, or none. */
export function describeDropped(dropped: readonly string[]): string[] {
  if (dropped.length === 0) return [];
  const what = dropped.length === 1 ? '1 variable' : `${dropped.length} variables`;
  return [
    `Workers do not get ${what} of your environment: ${listNames(dropped)}. environment.allow in the configuration lets more through.`,
  ];
}

/** What was asked for in vain; as above. */
export function describeUnmet(dropped: readonly string[], allow: readonly string[]): string[] {
  const unmet = dropped.filter((name) => allow.some((one) => matchesStars(one, name)));
  if (unmet.length === 0) return [];
  return [
    `environment.allow asks for variables that workers do not get: ${listNames(unmet)}. Some are never passed, secrets only by their very name, and nothing with a password in a URL.`,
  ];
}

function listNames(names: readonly string[]): string {
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  return `${names.slice(0, MOST_NAMED).map(toPrintable).join(', ')}${more}`;
}

function toPrintable(name: string): string {
  const clean = name.replaceAll(/[^\x21-\x7e]/g, '?');
  return clean.length <= LONGEST_NAMED ? clean : `${clean.slice(0, LONGEST_NAMED)}…`;
}

export interface WorkerFacts {
  readonly worker: number;
  readonly feature: string;
  readonly branch: string;
  /** As the worker sees them. */
  readonly worktree: string;
  readonly specDir: string;
  readonly taskId?: string | undefined;
  readonly attempt?: number | undefined;
  readonly port?: number | undefined;
}

/** What tells a worker's programs who they work for. */
export function workerVariables(facts: WorkerFacts): Record<string, string> {
  const { worker, feature, branch, worktree, specDir, taskId, attempt, port } = facts;
  return {
    MAHABHARATHA_WORKER_ID: String(worker),
    MAHABHARATHA_FEATURE: feature,
    MAHABHARATHA_BRANCH: branch,
    MAHABHARATHA_WORKTREE: worktree,
    MAHABHARATHA_SPEC_DIR: specDir,
    ...(taskId === undefined ? {} : { MAHABHARATHA_TASK_ID: taskId, TASK_ID: taskId }),
    ...(attempt === undefined ? {} : { MAHABHARATHA_ATTEMPT: String(attempt), ATTEMPT: String(attempt) }),
    ...(port === undefined ? {} : { PORT: String(port) }),
  };
}
