import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { FleetCommand } from './fleet-command.ts';
import type { FleetRepository } from './fleet-repository.ts';
import { engineThingsOf, processesIn } from './footprint.ts';
import { findTraces, waitFor } from './leftovers.ts';

/** Everything of a repository that a fleet must leave as it is, byte by byte. */
export interface HostView {
  readonly git: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, string>>;
  readonly worktrees: string;
  readonly main: string;
}

/** Of .git: what people set, what would run, and where they are. */
const GIT_FILES = ['config', 'HEAD', 'index', 'description', 'packed-refs'];
const GIT_FOLDERS = ['hooks', 'info'];
const OURS = new Set(['.git', '.mahabharatha', '.mahabharatha-worktrees']);

export function viewHost(repository: FleetRepository): HostView {
  const folder = join(repository.root, '.git');
  const inside = GIT_FOLDERS.flatMap((name) =>
    existsSync(join(folder, name)) ? readdirSync(join(folder, name)).map((file) => join(name, file)) : [],
  );
  return {
    git: Object.fromEntries([...GIT_FILES, ...inside].map((name) => [name, hash(join(folder, name))])),
    files: Object.fromEntries(
      listFiles(repository.root, '').map((name) => [name, hash(join(repository.root, name))]),
    ),
    worktrees: repository.git('worktree', 'list', '--porcelain'),
    main: repository.git('rev-parse', 'main'),
  };
}

function hash(path: string): string {
  if (!existsSync(path)) return 'none';
  const { mode, uid, gid } = statSync(path);
  const content = createHash('sha256').update(readFileSync(path)).digest('hex');
  return `${mode.toString(8)} ${uid}:${gid} ${content}`;
}

function listFiles(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => folder !== '' || !OURS.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? listFiles(root, path) : [path];
    });
}

/** A process that has led a fleet. */
type Leader = Pick<FleetCommand, 'pid' | 'instances'>;

/** What is left on the host and in the engine of a command that has ended, in words; empty when nothing is. */
export async function describeFleet(
  repository: FleetRepository,
  commands: readonly Leader[],
  engine: 'docker' | 'none' = 'none',
): Promise<string[]> {
  const instances = commands.flatMap((command) => [...command.instances]);
  const { processes, cgroups, mounts, folders } = findTraces(repository.state, instances);
  const things =
    engine === 'docker' ? (await Promise.all(commands.map(({ pid }) => engineThingsOf(pid)))).flat() : [];
  const beside = ['docker', 'podman', 'preload', 'subprocess'].flatMap((name) => {
    const folder = `${repository.state}-${name}`;
    return existsSync(folder) ? readdirSync(folder).map((file) => join(folder, file)) : [];
  });
  return [
    ...processes,
    ...processesOf(repository).map((line) => `process ${line}`),
    ...processesIn(instances.map((id) => `/hotcell/${id}/`)).map((pid) => `pid ${pid}`),
    ...cgroups,
    ...mounts,
    ...mountsOf(repository),
    ...loopsOf(repository).map((image) => `loop device of ${image}`),
    ...folders,
    ...beside,
    ...things.map(({ kind, name }) => `${kind} ${name}`),
  ];
}

/** Whatever works in the repository, or names it. */
export function processesOf({ root }: FleetRepository): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const place = readlinkSync(`/proc/${pid}/cwd`);
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return `${place}/`.startsWith(`${root}/`) || words.includes(root) ? [`${pid} ${place} ${words}`] : [];
      } catch {
        return [];
      }
    });
}

/** Images of the repository that the kernel still has open. */
export function loopsOf({ root }: FleetRepository): string[] {
  const names = readdirSync('/sys/block').filter((name) => name.startsWith('loop'));
  return names.flatMap((name) => {
    try {
      const image = readFileSync(`/sys/block/${name}/loop/backing_file`, 'utf8');
      return image.startsWith(`${root}/`) ? [image.trim()] : [];
    } catch {
      return [];
    }
  });
}

export function mountsOf({ root }: FleetRepository): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(root));
}

/** For what ends by itself, but not at once: cells of an orchestrator that was killed. */
export async function untilNothingIsLeft(
  repository: FleetRepository,
  commands: readonly Leader[],
  engine: 'docker' | 'none' = 'none',
): Promise<void> {
  let left: string[] = [];
  try {
    await waitFor(
      'nothing is left',
      async () => (left = await describeFleet(repository, commands, engine)).length === 0,
      20_000,
    );
  } catch (error) {
    throw new Error(`something is left:\n${left.join('\n')}`, { cause: error });
  }
}
