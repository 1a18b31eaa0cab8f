import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Fact, Note } from '../../core/driver.ts';
import { unenforced, type EnforcedBy, type Enforcement } from '../../core/enforcement.ts';
import type { Limits } from '../../core/limits.ts';
import { ownNumbers, toCores, type KernelLayer } from './launch-plan.ts';
import { SCOPES_SINCE } from './landlock.ts';
import { syscallTable, type SyscallTable } from '../linux/syscall-numbers.ts';

const SANDBOX_EXEC = '/usr/bin/sandbox-exec';
const TIME_MS = 20_000;

/** What the walls are made of here. */
export type Layer =
  | {
      readonly kind: 'linux';
      readonly table: SyscallTable;
      readonly kernel: KernelLayer;
      readonly isRoot: boolean;
    }
  | { readonly kind: 'seatbelt' }
  | { readonly kind: 'none' };

/**
 * Of the launcher alone: the program has an environment of its own. It ends too soon to be compiled in the background, and a
 * compiler at work in a thread of its own while walls and limits go up could bring the launcher down.
 */
export const LAUNCHER_ENV = { BUN_JSC_useConcurrentJIT: '0' } as const;

/** The command that starts guest/preload/launch.ts; nothing around it is read by Bun. */
export function launcherCommand(bun: string, guest: string): [string, ...string[]] {
  return [bun, '--no-install', '--no-env-file', '--config=/dev/null', `${guest}/preload/launch.ts`];
}

export async function findLayer(bun: string, guest: string): Promise<Layer> {
  if (process.platform === 'darwin') return { kind: existsSync(SANDBOX_EXEC) ? 'seatbelt' : 'none' };
  const table = process.platform === 'linux' ? syscallTable(process.arch) : undefined;
  if (table === undefined) return { kind: 'none' };
  const kernel = await askKernel(launcherCommand(bun, guest), table);
  return { kind: 'linux', table, kernel, isRoot: process.geteuid?.() === 0 };
}

/** Asks by the launcher itself: it makes the system calls that everything depends on. */
function askKernel(argv: readonly [string, ...string[]], table: SyscallTable): Promise<KernelLayer> {
  const [program, ...rest] = argv;
  return new Promise((resolve, reject) => {
    const child = spawn(program, rest, {
      env: LAUNCHER_ENV,
      cwd: '/',
      stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
      timeout: TIME_MS,
      killSignal: 'SIGKILL',
    });
    const said = { out: '', err: '' };
    const plan = child.stdio[3];
    if (!(plan instanceof Socket)) {
      reject(new Error('the launcher has no third descriptor'));
      return;
    }
    plan.on('error', () => {});
    plan.on('data', (bytes: Buffer) => (said.err += bytes.toString()));
    child.stdin?.on('error', () => {});
    child.stdin?.end();
    child.stdout?.on('data', (bytes: Buffer) => (said.out += bytes.toString()));
    child.stderr?.on('data', (bytes: Buffer) => (said.err += bytes.toString()));
    child.on('error', reject);
    child.on('close', () => {
      const layer = parseLayer(said.out);
      if (layer === undefined) reject(new Error(`the launcher does not start: ${said.err.slice(0, 500)}`));
      else resolve(layer);
    });
    plan.end(JSON.stringify({ report: true, numbers: ownNumbers(table) }));
  });
}

function parseLayer(text: string): KernelLayer | undefined {
  const found = /^\{"landlock":(\d+),"seccomp":(true|false),"notify":(true|false)\}$/.exec(text);
  if (found === null) return undefined;
  return { landlock: Number(found[1]), seccomp: found[2] === 'true', notify: found[3] === 'true' };
}

const NOBODY: EnforcedBy = 'nobody';
const by = (enforcer: EnforcedBy, condition: boolean): EnforcedBy => (condition ? enforcer : NOBODY);

/** Who keeps which promise for a cell with these limits. */
export function toEnforcement(layer: Layer, limits: Pick<Limits, 'cpus'>): Enforcement {
  const isLinux = layer.kind === 'linux';
  const kernel: KernelLayer = isLinux ? layer.kernel : { landlock: 0, seccomp: false, notify: false };
  const isRoot = isLinux && layer.isRoot;
  const isSeatbelt = layer.kind === 'seatbelt';
  const { seccomp, landlock } = kernel;
  return {
    cpus: by('kernel', seccomp && toCores(limits) !== undefined),
    memoryBytes: by('supervisor', isLinux),
    processes: isRoot ? 'kernel' : by('supervisor', isLinux),
    diskBytes: 'supervisor',
    openFiles: by('kernel', isLinux),
    // Without the filter a process can leave the group that is killed.
    wallTimeMs: by('supervisor', seccomp),
    outputBytes: 'supervisor',
    network: by('kernel', seccomp || isSeatbelt),
    filesystem: by('kernel', landlock > 0 || isSeatbelt),
    identity: by('kernel', isRoot),
    processView: by('kernel', isSeatbelt || landlock >= SCOPES_SINCE || (landlock > 0 && isRoot)),
    syscalls: by('kernel', seccomp),
  };
}

/** For people and receipts. */
export function toRuntime(layer: Layer, enforcement: Enforcement): string {
  if (enforcement.filesystem === 'nobody' || enforcement.network === 'nobody')
    return 'preload only — not isolation';
  return layer.kind === 'linux'
    ? `processes of the host behind Landlock ${layer.kernel.landlock} and seccomp`
    : 'processes of the host behind Seatbelt (never tried on a real Mac)';
}

export function toFacts(layer: Layer): Fact[] {
  if (layer.kind !== 'linux') return [{ name: 'walls', value: layer.kind }];
  const { landlock, seccomp } = layer.kernel;
  return [
    { name: 'Landlock', value: landlock === 0 ? 'none' : `version ${landlock}` },
    { name: 'seccomp', value: seccomp ? 'yes' : 'none' },
    { name: 'user', value: layer.isRoot ? 'an unused id per cell' : 'the one of the server' },
  ];
}

export function toNotes(layer: Layer, enforcement: Enforcement): Note[] {
  const notes: Note[] = [
    {
      text: 'commands run on the host itself; names and sizes of its files can be told, their content cannot be read',
    },
    { text: 'CPU is bounded in whole cores; memory, disk and time by looking again and again' },
  ];
  if (layer.kind === 'linux' && !layer.isRoot)
    notes.push({ text: 'without root commands run as you; chmod and the like are refused to them' });
  if (unenforced(enforcement).includes('filesystem'))
    notes.push({ text: 'preload only — not isolation', remedy: 'use the oci or the docker driver' });
  return notes;
}
