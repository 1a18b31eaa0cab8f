import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, inject } from 'vitest';
import { PROMISES } from '../../src/core/enforcement.ts';
import { AGENT_PROGRAM } from '../../src/fleet/agent/agent-package.ts';
import { findProgram } from '../../src/drivers/process/find-program.ts';
import { whyNoCertificates } from '../support/certificates.ts';
import type { FleetRepository } from '../support/fleet-repository.ts';
import { WAYS as FLEET_WAYS, envOf, type WayName } from '../support/fleet-ways.ts';
import { describeThatNeeds, isRoot } from '../support/needs.ts';
import { NOBODY, whyNoNobody } from '../support/nobody.ts';
import { isMeant } from '../support/served-by.ts';
import { useAgentImage } from './agent-image.ts';
import { MessagesApi } from './messages-api.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));

/** How the command is started in a repository, and where its agents are. */
export interface CommandSetup {
  /** Instead of node with our main. */
  readonly program?: string;
  readonly env: Readonly<Record<string, string>>;
  /** Of `.mahabharatha/config.yaml`, for what this way needs. */
  readonly config: Readonly<Record<string, object>>;
}

/** A way to run real agents. */
export interface AgentWay {
  readonly name: WayName;
  readonly args: readonly string[];
  readonly engine: 'docker' | 'none';
  /** Why it cannot be tested here, or undefined. */
  readonly missing: string | undefined;
  startApi(): Promise<MessagesApi>;
  /** Makes what the machine does not have, once for a file. */
  prepare(stack: AsyncDisposableStack): Promise<void>;
  furnish(repository: FleetRepository, api: MessagesApi): CommandSetup;
}

/** Addresses that names of this machine may have; the gate refuses them otherwise. */
const PRIVATE = '127.0.0.0/8,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16';

function toCellWay(name: 'oci' | 'docker', prepare: AgentWay['prepare']): AgentWay {
  const { args, engine, missing } = FLEET_WAYS[name];
  return {
    name,
    args,
    engine,
    missing: inject('whyNoAgent') ?? missing ?? whyNoCertificates(),
    startApi: () => MessagesApi.forCells(),
    prepare,
    furnish: (repository, api) => furnishCells(name, repository, api, CHECKOUT),
  };
}

/** With the agent that `fleet build` has installed for the user, as this one finds it below the checkout. */
function furnishCells(
  name: 'oci' | 'docker',
  { home }: FleetRepository,
  api: MessagesApi,
  checkout: string,
): CommandSetup {
  const data = join(home, '.bun-runner-mcp');
  mkdirSync(data);
  symlinkSync(join(checkout, relative(CHECKOUT, agentFolder()), '../..'), join(data, 'agents'));
  return {
    env: {
      ...envOf(name),
      HOTCELL_SESSIONS_EGRESS_PERMIT: PRIVATE,
      ...(api.caFile === undefined ? {} : { SSL_CERT_FILE: api.caFile }),
    },
    config: { network: { allow: [api.host] } },
  };
}

function agentFolder(): string {
  const folder = inject('agentFolder');
  if (folder === undefined) throw new Error('there is no agent');
  return folder;
}

/** Root becomes somebody else for it: without walls, the agent refuses to do whatever it likes as root. */
function whyNotPlain(): string | undefined {
  const missing = ['unshare', 'setpriv'].filter((name) => isRoot && findProgram(name) === undefined);
  return missing.length === 0 ? undefined : `${missing.join(', ')} is not installed`;
}

/** Becomes nobody in a mount namespace of its own, where the checkout can be reached whatever lies above it. */
const BECOME_NOBODY = `#!/bin/sh
exec unshare -m sh -c '
  mount --bind "$1" "$2" && node=$2/node_modules/node/bin/node main=$2/src/cli/main.ts && shift 2 &&
  exec setpriv --reuid=${NOBODY} --regid=${NOBODY} --clear-groups "$node" "$main" mahabharatha "$@"
' sh `;

/** As a plain user; `furnish` gets the checkout as that user finds it. */
function asPlain(repository: FleetRepository, furnish: (checkout: string) => CommandSetup): CommandSetup {
  if (!isRoot) return furnish(CHECKOUT);
  const seen = repository.beside('checkout');
  mkdirSync(seen);
  const setup = furnish(seen);
  const program = repository.beside('as-nobody');
  writeFileSync(program, `${BECOME_NOBODY}'${CHECKOUT}' '${seen}' "$@"\n`, { mode: 0o755 });
  // Git lets root look at what belongs to others only if it is told so.
  writeFileSync(join(repository.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, dirname(repository.root), repository.state]);
  return { ...setup, program };
}

/** With Claude Code where its installer puts it. */
function furnishPlain({ home }: FleetRepository, checkout: string): CommandSetup {
  const bin = join(home, '.local/bin');
  mkdirSync(bin, { recursive: true });
  symlinkSync(join(checkout, relative(CHECKOUT, agentFolder()), AGENT_PROGRAM), join(bin, 'claude'));
  return { env: { PATH: `${bin}:${process.env['PATH'] ?? ''}` }, config: {} };
}

/** In cells, whose user has no cgroups to keep the promises about memory and processes with. */
function furnishRootless(repository: FleetRepository, api: MessagesApi, checkout: string): CommandSetup {
  const { env, config } = furnishCells('oci', repository, api, checkout);
  return { env: { ...env, HOTCELL_WEAKER: PROMISES.join(',') }, config };
}

const WAYS = {
  oci: toCellWay('oci', () => Promise.resolve()),
  docker: toCellWay('docker', useAgentImage),
  plain: {
    name: 'subprocess',
    ...FLEET_WAYS.subprocess,
    missing: inject('whyNoAgent') ?? whyNotPlain(),
    startApi: () => MessagesApi.onLoopback(),
    prepare: () => Promise.resolve(),
    furnish: (repository) => asPlain(repository, (checkout) => furnishPlain(repository, checkout)),
  },
  rootless: {
    ...toCellWay('oci', () => Promise.resolve()),
    missing: inject('whyNoAgent') ?? whyNoNobody() ?? whyNoCertificates(),
    furnish: (repository, api) =>
      asPlain(repository, (checkout) => furnishRootless(repository, api, checkout)),
  },
} satisfies Record<string, AgentWay>;

/** The same tests over each of these ways; the ones of an engine are a project of their own. */
export function describeWays(
  names: readonly (keyof typeof WAYS)[],
  tests: (way: AgentWay, stack: AsyncDisposableStack) => void,
): void {
  for (const name of names.filter((one) => isMeant(one === 'docker' ? one : undefined))) {
    const way: AgentWay = WAYS[name];
    describeThatNeeds(way.missing)(name, () => {
      const stack = new AsyncDisposableStack();
      beforeAll(() => way.prepare(stack), 600_000);
      afterAll(() => stack.disposeAsync());
      tests(way, stack);
    });
  }
}
