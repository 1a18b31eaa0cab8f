import { lstat, readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { InstalledPackage } from '../core/installed-package.ts';
import { parseBunLock, type Lock, type LockedPackage } from './bun-lock.ts';
import type { Inspected } from './ecosystem.ts';
import { NEWEST, type InstallRequest } from './install-request.ts';
import { quoted } from './package-spec.ts';

export const LOCK_FILE = 'bun.lock';
export const MODULES = 'node_modules';
const LONGEST_LOCK = 8 * 1024 * 1024;
/** What bun itself puts beside packages: the programs they bring. */
const BESIDE: ReadonlySet<string> = new Set(['.bin']);

/** Holds what bun has installed to its lock file, and that to what was asked for. */
export async function inspectNpmSet(folder: string, request: InstallRequest): Promise<Inspected> {
  const text = await readLock(folder);
  const lock = parseBunLock(text);
  requireAsked(request, lock);
  await requireKnown(folder, lock);
  const packages = await listInstalled(folder, lock, request);
  const places = packages.filter(({ direct }) => direct).map(({ name }) => `${MODULES}/${name}`);
  return { lock: text, packages, places };
}

async function readLock(folder: string): Promise<string> {
  const names = await readdir(folder);
  if (names.toSorted().join() !== [LOCK_FILE, MODULES].join())
    throw new Error('something else was installed');
  const info = await lstat(join(folder, LOCK_FILE));
  const modules = await lstat(join(folder, MODULES));
  if (!modules.isDirectory()) throw new Error('no packages were installed');
  if (!info.isFile() || info.size > LONGEST_LOCK) throw new Error('the lock file makes no sense');
  return readFile(join(folder, LOCK_FILE), 'utf8');
}

function requireAsked({ specs }: InstallRequest, { asked, packages }: Lock): void {
  const top = new Set(packages.filter(({ isTop }) => isTop).map(({ name }) => name));
  const wrong = specs.find(({ name, range }) => asked.get(name) !== (range ?? NEWEST) || !top.has(name));
  if (wrong !== undefined) throw new Error(`something else was installed in place of ${wrong.name}`);
  if (asked.size !== specs.length) throw new Error('more was installed than was asked for');
}

/** Nothing lies in the first row that is not in the lock file. */
async function requireKnown(folder: string, { packages }: Lock): Promise<void> {
  const known = new Set(packages.map(({ path }) => path));
  const modules = join(folder, MODULES);
  for (const entry of await readdir(modules, { withFileTypes: true })) {
    if (BESIDE.has(entry.name)) continue;
    const isScope = entry.name.startsWith('@') && entry.isDirectory();
    const inner = isScope ? await readdir(join(modules, entry.name)) : [];
    const names = isScope ? inner.map((name) => `${entry.name}/${name}`) : [entry.name];
    const stranger = names.find((name) => !known.has(`${MODULES}/${name}`));
    if (stranger !== undefined) throw new Error(`${quoted(stranger)} is in no lock file`);
  }
}

/** The lock file also has packages for other platforms, which are not there. */
async function listInstalled(
  folder: string,
  { packages, asked }: Lock,
  request: InstallRequest,
): Promise<InstalledPackage[]> {
  const home = registryHost(request);
  const installed = new Map<string, InstalledPackage>();
  for (const locked of packages) {
    const { name, version, isTop } = locked;
    const direct = isTop && asked.has(name);
    const isThere = await lstat(join(folder, locked.path)).then(
      (info) => info.isDirectory(),
      () => false,
    );
    if (!isThere && direct) throw new Error(`${name} is not there for this platform`);
    const id = `${name}@${version}`;
    if (isThere && installed.get(id)?.direct !== true) {
      installed.set(id, { name, version, from: originOf(locked, home), direct });
    }
  }
  return [...installed.values()];
}

function originOf({ url }: LockedPackage, home: string): string {
  return url === undefined ? home : new URL(url).host;
}

/** The registry that is set, or else the one that the preset stands for. */
function registryHost({ registry: { variables, hosts } }: InstallRequest): string {
  const [, url] = Object.entries(variables).find(([name]) => /^npm_config_registry$/i.test(name)) ?? [];
  return URL.parse(url ?? '')?.host ?? hosts[0] ?? '';
}
