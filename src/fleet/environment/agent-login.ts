import { join } from 'node:path';
import * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import { parseJson } from '../../lib/parse-json.ts';
import type { AgentCredentials } from './credentials.ts';
import { readPlainFile } from './plain-file.ts';
import { Secret } from './secret.ts';

/** What `claude setup-token` makes: it lasts for a year, and cannot be used to sign in anew. */
export const TOKEN_VARIABLE = 'CLAUDE_CODE_OAUTH_TOKEN';

/** Of Claude Code, below the home folder. */
const TOKENS = '.claude/.credentials.json';
const MOST_FILE_BYTES = 4 * 1024 * 1024;
const LOGIN_HINT = `Sign in with \`claude auth login\`, or make a token that lasts with \`claude setup-token\` and set ${TOKEN_VARIABLE}.`;

/**
 * What signs in, without the refresh token. SECURITY: whoever uses that one spends it: an agent that refreshed its tokens in
 * a cell would log the user of this machine out.
 */
const Tokens = z.object({
  claudeAiOauth: z.object({
    accessToken: z.string().min(1),
    expiresAt: z.number().optional(),
    scopes: z.array(z.string()).optional(),
    subscriptionType: z.string().nullish(),
    rateLimitTier: z.string().nullish(),
  }),
});

export interface AgentLogin extends AgentCredentials {
  /** What must not be kept of what an agent prints. */
  readonly secrets: readonly Secret[];
  /** For people. */
  readonly from: string;
  /** When the token ends, in milliseconds since 1970. */
  readonly expiresAt: number | undefined;
}

/** `problem`: why there is none, and what to do. */
export type FoundLogin =
  { readonly login: AgentLogin } | { readonly what: string; readonly problem: string; readonly hint: string };

/** SECURITY: of the user's files in `~` only these fields are ever given away: the rest holds keys of other services. */
export async function findLogin(home: string, token: string | undefined): Promise<FoundLogin> {
  if (token !== undefined) {
    const secret = new Secret(token);
    const variables = { [TOKEN_VARIABLE]: secret };
    return { login: { variables, files: [], secrets: [secret], from: TOKEN_VARIABLE, expiresAt: undefined } };
  }
  const what = `~/${TOKENS}`;
  const file = await readPlainFile(join(home, TOKENS), MOST_FILE_BYTES);
  if (file.kind !== 'file') {
    const why = file.kind === 'refused' ? `: ${file.why}` : '';
    return { what, problem: `${what} is not there${why}`, hint: LOGIN_HINT };
  }
  const tokens = Tokens.safeParse(parseJson(file.bytes.toString())).data;
  if (tokens === undefined)
    return { what, problem: `${what} has no token that this version knows`, hint: LOGIN_HINT };
  const { accessToken, expiresAt } = tokens.claudeAiOauth;
  const content = new Secret(JSON.stringify(tokens));
  return {
    login: {
      variables: {},
      files: [{ path: TOKENS, mode: 0o600, content }],
      secrets: [new Secret(accessToken)],
      from: what,
      expiresAt,
    },
  };
}

/** So long a call of the agent needs its login, unless somebody has estimated it. */
export const USUAL_NEED_MS = 10 * 60_000;

/** Throws AGENT_SIGNED_OUT unless the login lasts that long. */
export function requireLogin(expiresAt: number | undefined, needMs: number, now = Date.now()): void {
  if (expiresAt === undefined || expiresAt - now > needMs) return;
  const at = new Date(expiresAt).toISOString();
  const minutes = Math.round(needMs / 60_000);
  const how =
    expiresAt <= now
      ? `ended at ${at}`
      : `ends at ${at}, in less than the ${minutes} minutes that it is needed for`;
  throw new HotcellError('AGENT_SIGNED_OUT', `the login of the agent ${how}`);
}
