import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HELPER_ENV } from '../../src/drivers/process/run-command.ts';
import { EngineApi } from './engine-api.ts';
import { claimEngineFolder, removeUnmounted } from './engine-folder.ts';
import { cgroupOf, clearRemains } from './engine-remains.ts';
import { findProgram } from './find-program.ts';

const ANSWERS_WITHIN_MS = 30_000;
const STOPS_WITHIN_MS = 20_000;
const LAST_WORDS = 2000;

export interface PrivateEngineOptions {
  /** `kept` has the images of the last time, unless another run uses them just now. */
  readonly data: 'kept' | 'temporary';
}

/** Why no engine can be started here, or undefined. */
export function whyNoPrivateEngine(): string | undefined {
  if (process.platform !== 'linux') return 'a private Docker engine needs Linux';
  if (process.geteuid?.() !== 0) return 'a private Docker engine needs root';
  if (findProgram('dockerd') === undefined) return 'dockerd is not installed (apt-get install docker.io)';
  return undefined;
}

/**
 * An engine of our own, with everything it has in one folder and without network, because no test needs any.
 * When the stack is disposed of, it is gone: processes, mounts, cgroups. If we are killed, the kernel tells it to stop.
 */
export async function startPrivateEngine(
  stack: AsyncDisposableStack,
  options: PrivateEngineOptions,
): Promise<EngineApi> {
  const problem = whyNoPrivateEngine();
  if (problem !== undefined) throw new Error(problem);
  const folder = await claimEngineFolder(stack, options.data);
  await clearRemains(folder);
  stack.defer(() => clearRemains(folder));
  const engine = new EngineApi(join(folder, 'docker.sock'));
  stack.defer(() => engine.close());
  const start = async (): Promise<void> => {
    const daemon = startDaemon(folder);
    stack.defer(() => stopDaemon(daemon, engine));
    await untilAnswers(engine, daemon, folder);
    await removeLeftovers(engine);
  };
  try {
    await start();
  } catch (error) {
    if (options.data === 'temporary') throw error;
    // Data that a crash has spoilt would spoil every later run.
    await clearRemains(folder);
    removeUnmounted(join(folder, 'data'));
    await start();
  }
  return engine;
}

export function startDaemon(folder: string): ChildProcess {
  writeFileSync(join(folder, 'daemon.json'), JSON.stringify({ runtimes: furtherRuntimes() }));
  // prettier-ignore
  const command = [
    'dockerd', '--config-file', join(folder, 'daemon.json'),
    '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'),
    '--pidfile', join(folder, 'docker.pid'), '-H', `unix://${join(folder, 'docker.sock')}`,
    '--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', cgroupOf(folder),
    '--bridge=none', '--iptables=false', '--ip6tables=false', '--log-level', 'warn',
  ];
  // Asks the kernel for a SIGTERM when its parent dies, then becomes dockerd.
  const guarded =
    findProgram('setpriv') === undefined ? command : ['setpriv', '--pdeathsig', 'TERM', ...command];
  const [program = '', ...args] = guarded;
  const log = openSync(join(folder, 'dockerd.log'), 'w');
  try {
    // Out of reach of Ctrl-C: on a second signal it goes without tidying up.
    return spawn(program, args, { env: HELPER_ENV, stdio: ['ignore', log, log], detached: true });
  } finally {
    closeSync(log);
  }
}

/** gVisor wants a network interface in every container, even in one that is to have no network, unless told so. */
function furtherRuntimes(): Record<string, { path: string; runtimeArgs: string[] }> {
  const path = findProgram('runsc');
  return path === undefined ? {} : { runsc: { path, runtimeArgs: ['--network=none'] } };
}

export async function untilAnswers(engine: EngineApi, daemon: ChildProcess, folder: string): Promise<void> {
  let failure: Error | undefined;
  daemon.on('error', (error) => (failure = error));
  const deadline = performance.now() + ANSWERS_WITHIN_MS;
  while ((await engine.version()) === undefined) {
    const ended = daemon.exitCode !== null || daemon.signalCode !== null || failure !== undefined;
    if (ended || performance.now() > deadline) {
      const words = failure?.message ?? readFileSync(join(folder, 'dockerd.log'), 'utf8').slice(-LAST_WORDS);
      throw new Error(`dockerd does not answer: ${words.trim()}`);
    }
    await sleep(50);
  }
}

/** What a run that was killed left in the data: nobody else uses this engine. */
async function removeLeftovers(engine: EngineApi): Promise<void> {
  await removeContainers(engine);
  const { Volumes: volumes } = await engine.call<{ Volumes: { Name: string }[] | null }>('GET', '/volumes');
  for (const { Name: name } of volumes ?? []) await engine.call('DELETE', `/volumes/${name}?force=1`);
  // Former versions of images that were made anew.
  await engine.call('POST', '/images/prune');
}

export async function removeContainers(engine: EngineApi): Promise<void> {
  const containers = await engine.call<{ Id: string }[]>('GET', '/containers/json?all=1');
  await Promise.all(containers.map(({ Id: id }) => engine.call('DELETE', `/containers/${id}?force=1&v=1`)));
}

export async function stopDaemon(daemon: ChildProcess, engine: EngineApi): Promise<void> {
  if (daemon.pid === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
  const exited = once(daemon, 'exit').then(() => true);
  const patience = (): Promise<boolean> => sleep(STOPS_WITHIN_MS, false, { ref: false });
  // It would wait ten seconds for programs that do not care for SIGTERM.
  await Promise.race([removeContainers(engine).catch(() => {}), patience(), exited]);
  daemon.kill('SIGTERM');
  if (await Promise.race([exited, patience()])) return;
  daemon.kill('SIGKILL');
  await exited;
}
