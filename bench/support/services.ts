import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { once } from 'node:events';

const running = new Set<ChildProcess>();
let closed = false;

/**
 * Starts something that runs until we stop it. It is out of reach of Ctrl-C: it gets one signal, from us, because
 * on a second one servers go without tidying up.
 */
export function startService(
  [program, ...args]: readonly [string, ...string[]],
  options: SpawnOptions,
): ChildProcess {
  if (closed) throw new Error('everything is being stopped');
  const child = spawn(program, args, { ...options, detached: true });
  running.add(child);
  child.on('exit', () => running.delete(child));
  child.on('error', () => running.delete(child));
  return child;
}

export async function stopService(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return;
  const exited = once(child, 'exit');
  // Whoever calls first asks; the others only wait.
  if (!child.killed) child.kill('SIGTERM');
  await exited;
}

export async function stopAllServices(): Promise<void> {
  closed = true;
  await Promise.all([...running].map((child) => stopService(child)));
}
