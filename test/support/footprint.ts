import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import { engineApi } from './docker-engine.ts';
import type { EngineApi } from './engine-api.ts';
import { findTraces } from './leftovers.ts';
import type { TestServer } from './server.ts';

/** A cell as it can be seen from outside. */
export interface SeenCell {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Which server's it is. */
  readonly owner: string;
}

/** By what a server can be known on the host: its cells by their cgroups, whatever else by names and labels. */
export interface Footprint {
  readonly stateDirectory: string;
  /** Where it may have things in the engine, whose labels tell its pid. */
  readonly driver: 'oci' | 'docker';
  readonly pid: number;
  /** Its folders in the state directory. */
  readonly instances: readonly string[];
  /** Parts of the cgroup paths of its cells. */
  readonly cgroups: readonly string[];
}

/** To be taken while the server runs: afterwards its names would not be known any more. */
export async function footprintOf(server: TestServer): Promise<Footprint> {
  const driver = server.way?.driver ?? 'oci';
  const pid = server.process.pid ?? 0;
  const instances = instancesOf(server.stateDirectory);
  const things = driver === 'docker' ? await engineThingsOf(pid) : [];
  const cgroups = [
    ...instances.map((id) => `/hotcell/${id}/`),
    ...things.filter(({ kind }) => kind === 'container').map(({ id }) => `/${id}`),
  ];
  return { stateDirectory: server.stateDirectory, driver, pid, instances, cgroups };
}

/** What is left on the host and in the engine, in words; empty when nothing is. */
export async function describeFootprint(footprint: Footprint): Promise<string[]> {
  const { stateDirectory, instances, driver, pid } = footprint;
  const { processes, cgroups, mounts, folders } = findTraces(stateDirectory, instances);
  const things = driver === 'docker' ? await engineThingsOf(pid) : [];
  return [
    ...processes,
    ...processesIn(footprint.cgroups).map((found) => `pid ${found}`),
    ...cgroups,
    ...mounts,
    ...folders,
    ...things.map(({ kind, name }) => `${kind} ${name}`),
  ];
}

/** Host pids of everything in these cgroups; programs cannot hide from their cgroup. */
export function processesIn(cgroups: readonly string[]): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const groups = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
        return cgroups.some((part) => groups.includes(part));
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The folders of running servers in a state directory. */
export function instancesOf(stateDirectory: string): string[] {
  return existsSync(stateDirectory)
    ? readdirSync(stateDirectory).filter((name) => !name.startsWith('.'))
    : [];
}

/** Every cell that the server has at this moment, also those that are being removed. */
export async function cellsOf(server: TestServer): Promise<SeenCell[]> {
  return server.way?.driver === 'docker' ? containersOf(server.process.pid ?? 0) : bundlesOf(server);
}

function bundlesOf(server: TestServer): SeenCell[] {
  return instancesOf(server.stateDirectory).flatMap((owner) => {
    const cells = join(server.stateDirectory, owner, 'cells');
    if (!existsSync(cells)) return [];
    return readdirSync(cells).map((id) => ({ id, owner, ...readBundle(join(cells, id, 'config.json')) }));
  });
}

/** A cell that is being made may have no configuration yet, or half of one. */
function readBundle(file: string): { name: string; labels: Readonly<Record<string, string>> } {
  try {
    const { hostname, annotations } = JSON.parse(readFileSync(file, 'utf8')) as {
      hostname: string;
      annotations: Record<string, string>;
    };
    return { name: hostname, labels: annotations };
  } catch {
    return { name: '', labels: {} };
  }
}

async function containersOf(pid: number): Promise<SeenCell[]> {
  const things = await engineThingsOf(pid);
  return things
    .filter(({ kind, labels }) => kind === 'container' && labels['hotcell.kind'] !== undefined)
    .map(({ id, name, labels }) => ({ id, name, labels, owner: labels[OWNER] ?? '' }));
}

const OWNER = 'hotcell.owner';

export interface EngineThing {
  readonly kind: 'container' | 'volume' | 'network';
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

interface Labelled {
  readonly Labels: Record<string, string> | null;
}

/**
 * Containers, running or not, volumes and networks of the server with this pid. An engine that was killed may list for
 * good what it removed long ago, and does not know it when asked: that is nobody's.
 */
export async function engineThingsOf(pid: number): Promise<EngineThing[]> {
  const api = engineApi();
  const filters = encodeURIComponent(JSON.stringify({ label: [OWNER] }));
  const [containers, volumes, networks] = await Promise.all([
    api.call<(Labelled & { Id: string; Names: string[] })[]>(
      'GET',
      `/containers/json?all=1&filters=${filters}`,
    ),
    api.call<{ Volumes: (Labelled & { Name: string })[] | null }>('GET', `/volumes?filters=${filters}`),
    api.call<(Labelled & { Id: string; Name: string })[]>('GET', `/networks?filters=${filters}`),
  ]);
  const things = [
    ...containers.map(({ Id, Names, Labels }) =>
      toThing('container', [Id, Names[0]?.slice(1) ?? ''], Labels),
    ),
    ...(volumes.Volumes ?? []).map(({ Name, Labels }) => toThing('volume', [Name, Name], Labels)),
    ...networks.map(({ Id, Name, Labels }) => toThing('network', [Id, Name], Labels)),
  ];
  const theirs = things.filter(({ labels }) => pidOf(labels) === pid);
  const isKnown = await Promise.all(
    theirs.map(async ({ kind, id }) => kind !== 'container' || (await knowsContainer(api, id))),
  );
  return theirs.filter((_, index) => isKnown[index]);
}

async function knowsContainer(api: EngineApi, id: string): Promise<boolean> {
  try {
    await api.call('GET', `/containers/${id}/json`);
    return true;
  } catch (error) {
    if (/No such container/.test(messageOf(error))) return false;
    throw error;
  }
}

function toThing(
  kind: EngineThing['kind'],
  [id, name]: readonly [string, string],
  labels: Labelled['Labels'],
): EngineThing {
  return { kind, id, name, labels: labels ?? {} };
}

/** The record of its maker that every thing of ours carries. */
function pidOf(labels: Readonly<Record<string, string>>): number | undefined {
  const record = labels['hotcell.process'];
  return record === undefined ? undefined : (JSON.parse(record) as { pid: number }).pid;
}
