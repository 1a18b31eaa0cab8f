import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, inject } from 'vitest';
import { AGENT_PROGRAM } from '../../src/fleet/agent/agent-package.ts';
import { findProgram } from '../../src/drivers/process/find-program.ts';
import { whyNoCertificates } from '../support/certificates.ts';
import type { FleetRepository } from '../support/fleet-repository.ts';
import { WAYS as FLEET_WAYS, envOf, type WayName } from '../support/fleet-ways.ts';
import { describeThatNeeds, isRoot } from '../support/needs.ts';
import { isMeant } from '../support/served-by.ts';
import { useAgentImage } from './agent-image.ts';
import { MessagesApi } from './messages-api.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const NOBODY = 65_534;

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
    furnish: (repository, api) => {
      const data = join(repository.home, '.bun-runner-mcp');
      mkdirSync(data);
      symlinkSync(join(agentFolder(), '../..'), join(data, 'agents'));
      return {
        env: {
          ...envOf(name),
          HOTCELL_SESSIONS_EGRESS_PERMIT: PRIVATE,
          ...(api.caFile === undefined ? {} : { SSL_CERT_FILE: api.caFile }),
        },
        config: { network: { allow: [api.host] } },
      };
    },
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

/** As a plain user, who has Claude Code where its installer puts it. */
function furnishPlain(repository: FleetRepository): CommandSetup {
  const seen = isRoot ? repository.beside('checkout') : CHECKOUT;
  const bin = join(repository.home, '.local/bin');
  mkdirSync(bin, { recursive: true });
  const claude = join(bin, 'claude');
  symlinkSync(join(seen, relative(CHECKOUT, agentFolder()), AGENT_PROGRAM), claude);
  const setup = { env: { PATH: `${bin}:${process.env['PATH'] ?? ''}` }, config: {} };
  if (!isRoot) return setup;
  mkdirSync(seen);
  const program = repository.beside('as-nobody');
  writeFileSync(program, `${BECOME_NOBODY}'${CHECKOUT}' '${seen}' "$@"\n`, { mode: 0o755 });
  // Git lets root look at what belongs to others only if it is told so.
  writeFileSync(join(repository.home, '.gitconfig'), '[safe]\n\tdirectory = *\n');
  execFileSync('chown', ['-R', `${NOBODY}:${NOBODY}`, dirname(repository.root), repository.state]);
  return { ...setup, program };
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
    furnish: furnishPlain,
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
