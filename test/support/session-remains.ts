import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { engineApi } from './docker-engine.ts';
import { mountsIn } from './engine-remains.ts';
import { processesIn } from './footprint.ts';
import { listProcesses, waitFor } from './leftovers.ts';
import { dataDirectoryOf } from './server.ts';

/** By what the sessions of one store can be known on the host, whoever serves them at the moment. */
export interface SessionSite {
  readonly stateDirectory: string;
  readonly driver: 'oci' | 'docker';
  /** Names the store in cgroups and labels. */
  readonly store: string;
}

/** To be asked while no server runs: the store is for one reader only. */
export function siteOf(stateDirectory: string, driver: SessionSite['driver']): SessionSite {
  const file = join(dataDirectoryOf(stateDirectory), 'sessions.db');
  if (!existsSync(file)) return { stateDirectory, driver, store: '' };
  using db = new DatabaseSync(file);
  const store = db.prepare("SELECT value FROM meta WHERE name = 'keeper'").get()?.['value'];
  return { stateDirectory, driver, store: typeof store === 'string' ? store : '' };
}

/** What of its sessions is on the host and in the engine, in words; empty when they are all gone. */
export async function describeSessions(site: SessionSite): Promise<string[]> {
  const { stateDirectory, store } = site;
  const data = dataDirectoryOf(stateDirectory);
  const containers = await containersOf(site);
  return [
    ...listProcesses().filter((line) => line.includes(stateDirectory)),
    ...cellPids(site, containers).map((pid) => `pid ${pid}`),
    ...(store === '' ? [] : cgroupsOf(store)),
    ...mountsBelow([stateDirectory, data]).map((path) => `mount ${path}`),
    ...loopsBelow(data),
    ...imagesIn(data),
    ...listFolder(stateDirectory),
    ...listFolder(join(data, 'output')),
    ...containers.map((id) => `container ${id}`),
    ...(await volumesOf(site)).map((name) => `volume ${name}`),
  ];
}

/** Whatever a failed test has left, so that it does not become the failure of the next one. */
export async function clearSessions(site: SessionSite): Promise<void> {
  const { stateDirectory } = site;
  const containers = await containersOf(site);
  for (const pid of cellPids(site, containers)) tryTo(() => process.kill(pid, 'SIGKILL'));
  await waitFor('its processes are dead', () => cellPids(site, containers).length === 0).catch(() => {});
  for (const id of containers)
    await engineApi()
      .call('DELETE', `/containers/${id}?force=1`)
      .catch(() => {});
  for (const name of await volumesOf(site))
    await engineApi()
      .call('DELETE', `/volumes/${name}`)
      .catch(() => {});
  const data = dataDirectoryOf(stateDirectory);
  // The deepest first; the folders may be mounts themselves.
  for (const path of [stateDirectory, data].flatMap(mountsIn).toReversed()) spawnSync('umount', ['-l', path]);
  for (const path of cgroupsOf(site.store).toReversed()) spawnSync('rmdir', [path]);
  for (const folder of [stateDirectory, data])
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
}

function cellPids({ store }: SessionSite, containers: readonly string[]): number[] {
  if (store === '') return [];
  return processesIn([`/hotcell/lasting-${store}/`, ...containers.map((id) => `/${id}`)]);
}

/** Below every hierarchy, the outermost first. */
function cgroupsOf(store: string): string[] {
  return store === '' ? [] : globSync(`/sys/fs/cgroup/{,*/}hotcell/lasting-${store}{,/**/}`).toSorted();
}

function mountsBelow(folders: readonly string[]): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

/** The kernel keeps a loop device as long as anybody has its file system mounted, in whatever namespace. */
export function loopsBelow(folder: string): string[] {
  return readdirSync('/sys/block')
    .filter((name) => name.startsWith('loop'))
    .map(
      (name) =>
        `${name} of ${tryTo(() => readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8').trim()) ?? ''}`,
    )
    .filter((line) => line.includes(`${folder}/`));
}

/** File systems of projects; templates are of no session. */
function imagesIn(data: string): string[] {
  return listFolder(join(data, 'volumes')).filter((path) => !basename(path).startsWith('template-'));
}

function listFolder(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
}

async function containersOf({ driver, store }: SessionSite): Promise<string[]> {
  if (driver === 'oci' || store === '') return [];
  const found = await engineApi().call<{ Id: string }[]>(
    'GET',
    `/containers/json?all=1&filters=${toFilter(store)}`,
  );
  return found.map(({ Id }) => Id);
}

async function volumesOf({ driver, store }: SessionSite): Promise<string[]> {
  if (driver === 'oci' || store === '') return [];
  const { Volumes } = await engineApi().call<{ Volumes: { Name: string }[] | null }>(
    'GET',
    `/volumes?filters=${toFilter(store)}`,
  );
  return (Volumes ?? []).map(({ Name }) => Name);
}

function toFilter(store: string): string {
  return encodeURIComponent(JSON.stringify({ label: [`hotcell.keeper=${store}`] }));
}

/** What is gone meanwhile is no concern of ours. */
function tryTo<Value>(action: () => Value): Value | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
