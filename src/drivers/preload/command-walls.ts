import type { Reach } from '../../core/exec.ts';
import type { PathRule } from './landlock.ts';

/** Programs and libraries of the host. */
const PROGRAMS = ['/usr', '/lib', '/lib32', '/lib64', '/libx32', '/bin', '/sbin'];
/** What libraries read at their start; nothing in them says who uses this machine. */
const SYSTEM_FILES = [
  '/etc/ld.so.cache',
  '/etc/ld.so.preload',
  '/etc/ld.so.conf',
  '/etc/ld.so.conf.d',
  '/etc/alternatives',
  '/etc/localtime',
  // Read by a bash whose stdin is a socket.
  '/etc/bash.bashrc',
  '/etc/ssl/openssl.cnf',
  '/etc/ssl/certs',
];
/**
 * Of the process itself and no other, not even its children. The C library finds the ends of its stack in the first, and
 * without it Bun ends at once; the others are its own figures.
 */
const OWN_PROCESS = ['/proc/self/maps', '/proc/self/stat', '/proc/self/statm', '/proc/self/status'];
const DEVICES = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];
/** The loader of each C library: the kernel starts it with the program. */
const LOADERS = [
  '/lib64/ld-linux-x86-64.so.2',
  '/lib/ld-linux-aarch64.so.1',
  '/lib/ld-musl-x86_64.so.1',
  '/lib/ld-musl-aarch64.so.1',
];

/** Without a word of the caller: the workdir, and the programs of the host. */
export const DEFAULT_REACH: Reach = { read: [], write: [], port: undefined, programs: true };

export interface CellFolders {
  readonly workdir: string;
  /** Folders of the spec, and what the guest needs. */
  readonly folders: readonly string[];
  readonly tools: readonly string[];
}

/** Every path that a command may use; what is not named here is closed to it. */
export function toPathRules(program: string, places: CellFolders, reach: Reach): PathRule[] {
  const rule =
    (use: PathRule['use']) =>
    (path: string): PathRule => ({ path, use });
  const libraries = reach.programs ? 'run' : 'read';
  return [
    ...PROGRAMS.map(rule(libraries)),
    ...places.tools.map(rule(libraries)),
    ...(reach.programs ? [] : [program, ...LOADERS].map(rule('run'))),
    ...SYSTEM_FILES.map(rule('read')),
    ...DEVICES.map(rule('device')),
    ...OWN_PROCESS.map(rule('read')),
    ...places.folders.map(rule('read')),
    ...reach.read.map(rule('read')),
    ...reach.write.map((path): PathRule => ({ path, use: 'write', make: true })),
    rule(reach.programs ? 'work' : 'write')(places.workdir),
  ];
}
