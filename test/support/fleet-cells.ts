import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { engineApi } from './docker-engine.ts';
import type { FleetCommand } from './fleet-command.ts';
import { engineThingsOf, processesIn } from './footprint.ts';

/** What the engine says of a container. */
export interface Container {
  readonly Id: string;
  readonly Name: string;
  readonly State: { Running: boolean; StartedAt: string };
  readonly Path: string;
  readonly Args: readonly string[];
  readonly Config: { Env: string[]; User: string; Labels: Record<string, string>; Cmd: string[] | null };
  readonly HostConfig: {
    Memory: number;
    MemorySwap: number;
    NanoCpus: number;
    PidsLimit: number;
    Privileged: boolean;
    CapDrop: string[];
    CapAdd: string[] | null;
    NetworkMode: string;
    ReadonlyRootfs: boolean;
    SecurityOpt: string[];
    Binds: string[] | null;
    PidMode: string;
  };
  readonly Mounts: { Type: string; Source: string; Destination: string; RW: boolean; Name?: string }[];
}

/** Those of one orchestrator, by name. */
export async function inspectContainers({ pid }: Pick<FleetCommand, 'pid'>): Promise<Container[]> {
  const things = await engineThingsOf(pid);
  const containers = things.filter(({ kind }) => kind === 'container');
  const inspected = await Promise.all(
    containers.map(({ id }) => engineApi().call<Container>('GET', `/containers/${id}/json`)),
  );
  return inspected.toSorted((a, b) => a.Name.localeCompare(b.Name));
}

export interface SeenAgent {
  readonly pid: number;
  readonly status: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, string>>;
}

/** The agents of cells without an engine, from outside: by their cgroups. */
export function lookAtAgents({ instances }: FleetCommand): SeenAgent[] {
  const pids = processesIn([...instances].map((id) => `/hotcell/${id}/`));
  return pids
    .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('agent.mjs'))
    .map((pid) => {
      const lines = readFileSync(`/proc/${pid}/status`, 'utf8').split('\n');
      const status = Object.fromEntries(lines.map((line) => line.split(':\t') as [string, string]));
      return { pid, status, limits: limitsOf(pid) };
    });
}

/** Of version 1 and 2: by whatever name, where the process is or above it. */
function limitsOf(pid: number): Record<string, string> {
  const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n');
  const found: Record<string, string> = {};
  for (const [, controllers = '', path = ''] of groups.map((line) => line.split(':'))) {
    const top = controllers === '' ? '/sys/fs/cgroup' : `/sys/fs/cgroup/${controllers.replace('name=', '')}`;
    for (const [name, files] of Object.entries(LIMIT_FILES)) {
      for (let at = path; at.includes('/hotcell/'); at = join(at, '..')) {
        const text = files.map((file) => readIfAny(join(top, at, file))).find((value) => isLimit(value));
        if (text !== undefined) found[name] ??= text;
      }
    }
  }
  return found;
}

const LIMIT_FILES = {
  memory: ['memory.max', 'memory.limit_in_bytes'],
  cpu: ['cpu.max', 'cpu.cfs_quota_us'],
  pids: ['pids.max'],
};

/** A group that sets none says so by a huge number, or by a word. */
function isLimit(value: string | undefined): boolean {
  return value !== undefined && !/^(max|-1|\d{16,})/.test(value);
}

function readIfAny(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return undefined;
  }
}
