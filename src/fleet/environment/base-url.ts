import { isIPv4 } from 'node:net';
import { HotcellError } from '../../core/errors.ts';
import type { Refused } from '../../egress/host-name.ts';
import { isClaudeCode } from '../agent/check-agent.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetSite } from '../fleet-site.ts';
import type { AgentCredentials } from './credentials.ts';

export interface BaseUrlCheck {
  readonly site: Pick<FleetSite, 'whyNotReached'>;
  readonly config: Pick<FleetConfig, 'agent' | 'network' | 'credentials'>;
  readonly credentials: Pick<AgentCredentials, 'variables'>;
  /** Of every program of a worker. */
  readonly variables: Readonly<Record<string, string>>;
}

const FILE = '.mahabharatha/config.yaml';

/**
 * Before anything is made: can the agent reach the API that it is told to use? Otherwise each attempt of each task would
 * fail, and only a log say why. Returns what people should know.
 */
export async function checkBaseUrl({
  site,
  config,
  credentials,
  variables,
}: BaseUrlCheck): Promise<string[]> {
  const { agent, network } = config;
  const name = config.credentials.base_url_variable;
  // What comes with the credentials is what the agent sees.
  const chosen = credentials.variables[name]?.reveal() ?? agent.env[name];
  const value = chosen ?? variables[name];
  if (value === undefined || value === '' || site.whyNotReached === undefined) return [];
  const problem = await findProblem(name, value, (url) => site.whyNotReached?.(network.allow, url));
  if (problem === undefined) return [];
  // Others may not even look at what the caller has in the environment, and a name may have an address later.
  const isSure = (chosen !== undefined || isClaudeCode(agent)) && problem.mayPass !== true;
  if (!isSure) return [`${problem.text}. ${problem.hint}`];
  throw new HotcellError('INVALID_REQUEST', problem.text, { hint: problem.hint });
}

interface Problem {
  readonly text: string;
  readonly hint: string;
  readonly mayPass?: true;
}

async function findProblem(
  name: string,
  value: string,
  ask: (url: URL) => Promise<Refused | undefined> | undefined,
): Promise<Problem | undefined> {
  const url = URL.parse(value);
  if (url === null || !/^https?:$/.test(url.protocol))
    return { text: `${name} is no URL of http or https`, hint: 'Correct it.' };
  const { host, hostname, origin } = url;
  // SECURITY: the origin has no password in it.
  const what = `${name} is ${origin}`;
  if (/(?:^|\.)localhost$/.test(hostname))
    return {
      text: `${what}, which in a cell is the cell itself`,
      hint: `${howToName(url)} ${howToPermit(['127.0.0.1'])}`,
    };
  const refused = await ask(url);
  if (refused === undefined) return undefined;
  const { code, reason, addresses = [] } = refused;
  const permit = addresses.length === 0 ? '' : ` ${howToPermit(addresses)}`;
  switch (code) {
    case 'not_allowed':
    case 'port':
      return {
        text: `${what}, and workers may not reach it: network.allow has no ${host}`,
        hint: `${howToAllow(host)}${permit}`,
      };
    case 'private_address':
      return {
        text: `${what}, and the gate does not let cells go to its address ${addresses.join(', ')}, which is not of the public internet`,
        hint: howToPermit(addresses),
      };
    case 'ip_literal':
      return {
        text: `${what}, and the gate knows names only`,
        hint: `${howToName(url)}${permit}`,
      };
    case 'unresolvable':
    case 'malformed':
    case 'sni_mismatch':
      return {
        text: `${what}, which cannot be reached: ${reason}`,
        hint: 'Look at the names that this machine knows.',
        mayPass: true,
      };
  }
}

function howToAllow(host: string): string {
  return `Add ${host} to network.allow in ${FILE}.`;
}

/** The gate compares names, so what has none needs one. */
function howToName({ protocol, port }: URL): string {
  const host = `gateway.internal${port === '' ? '' : `:${port}`}`;
  return `Give it a name in /etc/hosts of this machine, such as gateway.internal, and use ${protocol}//${host} in its place. ${howToAllow(host)}`;
}

function howToPermit(addresses: readonly string[]): string {
  const ranges = addresses.map((address) => `${address}/${isIPv4(address) ? 32 : 128}`);
  return `If that address is meant, permit it: sessions.egress.permit: ${JSON.stringify(ranges)} in hotcell.yaml, or HOTCELL_SESSIONS_EGRESS_PERMIT=${ranges.join(',')} in the environment; a range such as 10.0.0.0/8 will do, too.`;
}
