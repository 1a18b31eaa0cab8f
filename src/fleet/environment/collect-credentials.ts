import { join } from 'node:path';
import type { HeaderInjection } from '../../egress/header-injection.ts';
import { parseDotenv } from '../../lib/dotenv.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetMachine } from '../fleet-machine.ts';
import type { AgentCredentials, CredentialFile } from './credentials.ts';
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
  /** For people: what there is and where it is from, without values. */
  readonly found: readonly string[];
  readonly missing: readonly MissingCredential[];
}

/** Clients refuse to start without a key, also where the gate adds the real one. */
const PLACEHOLDER = 'kept-by-the-gate';

/** Every header can hold it, and no key has other characters. */
const KEY = /^[\x21-\x7e]{1,4096}$/;
const MOST_DOTENV_BYTES = 256 * 1024;
const MOST_FILE_BYTES = 4 * 1024 * 1024;
/** Of Claude Code, below the home folder. It writes to both while it works. */
const OAUTH_TOKENS = '.claude/.credentials.json';
const OAUTH_FILES: readonly string[] = [OAUTH_TOKENS, '.claude.json'];

type Wish = FleetConfig['credentials'];

/** Finds what the configuration wants the agent to have, and says what of it is not there. */
export async function collectCredentials(
  wish: Wish,
  sources: CredentialSources,
): Promise<CollectedCredentials> {
  const key = wish.api_key === 'none' ? undefined : await findKey(wish.api_key_variable, sources);
  const oauth = wish.oauth ? await findOauth(sources) : NOTHING;
  // One way in is enough.
  const isKeyMissed = key !== undefined && 'hint' in key && oauth.files.length === 0;
  const missing = [...(isKeyMissed ? [key] : []), ...oauth.missing];
  const common = { files: oauth.files, missing };
  if (key === undefined || 'hint' in key) {
    return { ...common, variables: {}, inject: [], withheld: [], found: oauth.found };
  }
  const found = [`${wish.api_key_variable} from ${key.from}`, ...oauth.found];
  const secret = new Secret(key.value);
  if (wish.api_key === 'agent') {
    return { ...common, variables: { [wish.api_key_variable]: secret }, inject: [], withheld: [], found };
  }
  return {
    ...common,
    variables: {
      [wish.base_url_variable]: new Secret(`http://${wish.api_host}`),
      [wish.api_key_variable]: new Secret(PLACEHOLDER),
    },
    inject: [toInjection(wish, key.value)],
    withheld: [secret],
    found,
  };
}

function toInjection({ api_host: host, api_header: header }: Wish, key: string): HeaderInjection {
  const value = header === 'authorization' ? `Bearer ${key}` : key;
  return { host, headers: { [header]: new Secret(value) } };
}

type Key = { readonly value: string; readonly from: string } | MissingCredential;

async function findKey(variable: string, { env, root }: CredentialSources): Promise<Key> {
  const own = (env[variable] ?? '').trim();
  if (own !== '') return toKey(variable, own, 'the environment');
  const file = await readPlainFile(join(root, '.env'), MOST_DOTENV_BYTES);
  const value = file.kind === 'file' ? (parseDotenv(file.bytes.toString())[variable] ?? '').trim() : '';
  if (value !== '') return toKey(variable, value, '.env');
  const why = file.kind === 'refused' ? ` (${join(root, '.env')} was not read: ${file.why})` : '';
  return {
    what: variable,
    hint: `Set ${variable} in the environment or in .env of the repository${why}, or set credentials.api_key to none.`,
  };
}

function toKey(what: string, value: string, from: string): Key {
  if (KEY.test(value)) return { value, from };
  return { what, hint: `What ${from} has as ${what} holds characters that are in no key.` };
}

type Oauth = Pick<CollectedCredentials, 'files' | 'found' | 'missing'>;

const NOTHING: Oauth = { files: [], found: [], missing: [] };

async function findOauth({ home }: CredentialSources): Promise<Oauth> {
  const read = await Promise.all(
    OAUTH_FILES.map(async (path) => ({ path, file: await readPlainFile(join(home, path), MOST_FILE_BYTES) })),
  );
  const tokens = read.find(({ path }) => path === OAUTH_TOKENS)?.file;
  if (tokens?.kind !== 'file') {
    const why = tokens?.kind === 'refused' ? `: ${tokens.why}` : '';
    const hint = `~/${OAUTH_TOKENS} is not there${why}. Run \`claude\` and log in, or set credentials.oauth to false.`;
    return { ...NOTHING, missing: [{ what: `~/${OAUTH_TOKENS}`, hint }] };
  }
  const files = read.flatMap(({ path, file }): CredentialFile[] =>
    file.kind === 'file' ? [{ path, mode: 0o600, content: new Secret(file.bytes.toString()) }] : [],
  );
  // Without the other file the agent works, but greets its user as a new one.
  const missing = read.flatMap(({ path, file }): MissingCredential[] =>
    file.kind === 'refused' ? [{ what: `~/${path}`, hint: `It is not taken over: ${file.why}.` }] : [],
  );
  return { files, found: files.map(({ path }) => `~/${path}`), missing };
}
