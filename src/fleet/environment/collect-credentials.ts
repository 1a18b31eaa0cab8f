import { join } from 'node:path';
import { HotcellError } from '../../core/errors.ts';
import type { HeaderInjection } from '../../egress/header-injection.ts';
import { parseDotenv } from '../../lib/dotenv.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetMachine } from '../fleet-machine.ts';
import { findLogin, TOKEN_VARIABLE, type FoundLogin } from './agent-login.ts';
import type { AgentCredentials } from './credentials.ts';
import { readPlainFile } from './plain-file.ts';
import { Secret } from './secret.ts';

export interface CredentialSources extends Pick<FleetMachine, 'env' | 'home'> {
  /** Of the repository: its `.env` is asked when the environment has no key. */
  readonly root: string;
}

export interface MissingCredential {
  /** The name of a variable or file. */
  readonly what: string;
  /** What a person can do. */
  readonly hint: string;
}

export interface CollectedCredentials extends AgentCredentials {
  /** For the gate: what the agent does not get itself. */
  readonly inject: readonly HeaderInjection[];
  /** What must not get into a cell in another way either: see `withhold` of `copyIgnoredFiles`. */
  readonly withheld: readonly Secret[];
  /** What must not be kept of what programs print: what there is beside may be in a file that workers get. */
  readonly secrets: readonly Secret[];
  /** Where it is from, if the agent signs in as the user. */
  readonly login: string | undefined;
  /** When the login ends, in milliseconds since 1970; undefined where it does not, or nobody knows. */
  readonly expiresAt: number | undefined;
  /** For people: what there is and where it is from, without values. */
  readonly found: readonly string[];
  readonly missing: readonly MissingCredential[];
}

/** Clients refuse to start without a key, also where the gate adds the real one. */
const PLACEHOLDER = 'kept-by-the-gate';

/** Every header can hold it, and no key has other characters. */
const KEY = /^[\x21-\x7e]{1,4096}$/;
const MOST_DOTENV_BYTES = 256 * 1024;

type Wish = FleetConfig['credentials'];

/** Finds what the configuration wants the agent to have, and says what of it is not there. */
export async function collectCredentials(
  wish: Wish,
  sources: CredentialSources,
): Promise<CollectedCredentials> {
  const key = wish.api_key === 'none' ? undefined : await findVariable(wish.api_key_variable, sources);
  const isKeyThere = key !== undefined && 'value' in key;
  const token = await findVariable(TOKEN_VARIABLE, sources);
  // A token in the environment is there for nothing else; it is not looked for where there is a key, unless by name.
  const wantsLogin = wish.oauth || (key !== undefined && !isKeyThere && 'value' in token);
  const found = wantsLogin
    ? await findLogin(sources.home, 'value' in token ? token.value : undefined)
    : undefined;
  // One way in is enough, and whoever asks for the login does not want to pay for the key, even if the login is not there.
  const secrets = [key, token].flatMap((one) =>
    one !== undefined && 'value' in one ? [new Secret(one.value)] : [],
  );
  if (found !== undefined) return toLoggedIn(found, secrets);
  if (!isKeyThere) return { ...NOTHING, missing: key === undefined ? [] : [key] };
  const secret = new Secret(key.value);
  const common = {
    ...NOTHING,
    secrets,
    found: [`${wish.api_key_variable} from ${key.from}`],
  };
  if (wish.api_key === 'agent') return { ...common, variables: { [wish.api_key_variable]: secret } };
  return {
    ...common,
    variables: {
      [wish.base_url_variable]: new Secret(`http://${wish.api_host}`),
      [wish.api_key_variable]: new Secret(PLACEHOLDER),
    },
    inject: [toInjection(wish, key.value)],
    withheld: [secret],
  };
}

const NOTHING: CollectedCredentials = {
  variables: {},
  files: [],
  inject: [],
  withheld: [],
  secrets: [],
  found: [],
  missing: [],
  login: undefined,
  expiresAt: undefined,
};

function toLoggedIn(found: FoundLogin, beside: readonly Secret[]): CollectedCredentials {
  if (!('login' in found))
    return { ...NOTHING, missing: [{ what: found.what, hint: `${found.problem}. ${found.hint}` }] };
  const { from, ...login } = found.login;
  const until =
    login.expiresAt === undefined ? '' : `, which ends at ${new Date(login.expiresAt).toISOString()}`;
  const secrets = [...login.secrets, ...beside];
  return { ...NOTHING, ...login, secrets, login: from, found: [`the login of ${from}${until}`] };
}

/**
 * Before each call of the agent: logins are renewed on the host, and nowhere else. Throws AGENT_SIGNED_OUT when a login that
 * the run began with is gone: a key that happens to be there is paid for by somebody who did not choose it.
 */
export async function renewCredentials(
  began: CollectedCredentials,
  wish: Wish,
  sources: CredentialSources,
): Promise<CollectedCredentials> {
  const now = await collectCredentials(wish, sources);
  if (began.login === undefined || now.login !== undefined) return now;
  throw new HotcellError('AGENT_SIGNED_OUT', `the login of the agent is gone (${began.login})`);
}

function toInjection({ api_host: host, api_header: header }: Wish, key: string): HeaderInjection {
  const value = header === 'authorization' ? `Bearer ${key}` : key;
  return { host, headers: { [header]: new Secret(value) } };
}

type Found = { readonly value: string; readonly from: string } | MissingCredential;

async function findVariable(variable: string, { env, root }: CredentialSources): Promise<Found> {
  const own = (env[variable] ?? '').trim();
  if (own !== '') return toKey(variable, own, 'the environment');
  const file = await readPlainFile(join(root, '.env'), MOST_DOTENV_BYTES);
  const value = file.kind === 'file' ? (parseDotenv(file.bytes.toString())[variable] ?? '').trim() : '';
  if (value !== '') return toKey(variable, value, '.env');
  const why = file.kind === 'refused' ? ` (${join(root, '.env')} was not read: ${file.why})` : '';
  return {
    what: variable,
    hint: `Set ${variable} in the environment or in .env of the repository${why}, sign in with a subscription (credentials.oauth: true, or ${TOKEN_VARIABLE} from \`claude setup-token\`), or set credentials.api_key to none.`,
  };
}

function toKey(what: string, value: string, from: string): Found {
  if (KEY.test(value)) return { value, from };
  return { what, hint: `What ${from} has as ${what} holds characters that are in no key.` };
}
