import { checkAgent } from '../agent/check-agent.ts';
import type { FleetConfig } from '../fleet-config.ts';
import type { FleetMachine } from '../fleet-machine.ts';
import type { FleetSite } from '../fleet-site.ts';
import { checkBaseUrl } from './base-url.ts';
import type { AgentCredentials } from './credentials.ts';
import { describeUnmet, filterEnvironment } from './variables.ts';

export interface PreparedAgent {
  /** Of every program of a worker. */
  readonly variables: Readonly<Record<string, string>>;
  /** Names of those of the caller's that workers do not get. */
  readonly dropped: readonly string[];
  /** For people: what may not be as they think. */
  readonly warnings: readonly string[];
}

export interface AgentSurroundings {
  readonly site: FleetSite;
  readonly config: FleetConfig;
  readonly credentials: AgentCredentials;
  /** Of the repository. */
  readonly root: string;
}

/** What the agent will find where it works. Throws if it could not even begin there. */
export async function prepareAgent(
  { env, home }: Pick<FleetMachine, 'env' | 'home'>,
  { site, config, credentials, root }: AgentSurroundings,
): Promise<PreparedAgent> {
  const { kept: variables, dropped } = filterEnvironment(env, config, site.mode);
  const { agent } = config;
  const uid = process.getuid?.() ?? 0;
  const remarks = [
    ...(await checkAgent({ site, agent, variables, root, home, uid })),
    ...(await checkBaseUrl({ site, config, credentials, variables })),
  ];
  return {
    variables,
    dropped,
    warnings: [...remarks, ...describeUnmet(dropped, config.environment.allow)],
  };
}
