import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hierarchiesOf, removeCgroups } from '../../src/drivers/oci/cgroup.ts';
import { readCgroupLayout } from '../../src/drivers/oci/cgroup-layout.ts';
import { note } from '../support/progress.ts';
import { startService, stopService } from '../support/services.ts';
import { EngineApi } from './engine-api.ts';

const ANSWERS_WITHIN_MS = 30_000;

/**
 * An engine of our own, with everything it has in one folder. Without network, because hello needs none; with the
 * plainest storage driver, because programs come from a mount and not from the image.
 */
export async function startPrivateDockerd(stack: AsyncDisposableStack): Promise<EngineApi> {
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-bench-docker-'));
  stack.defer(() => removeUnmounted(folder));
  // Its own, since the usual one stays behind and may be somebody else's.
  const cgroup = `/${basename(folder)}`;
  stack.defer(async () => removeCgroups(hierarchiesOf(await readCgroupLayout()), cgroup));
  const socket = join(folder, 'docker.sock');
  // prettier-ignore
  const flags = [
    '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'),
    '--pidfile', join(folder, 'docker.pid'), '-H', `unix://${socket}`,
    '--exec-opt', 'native.cgroupdriver=cgroupfs', '--cgroup-parent', cgroup,
    '--storage-driver', 'vfs', '--bridge=none', '--iptables=false', '--ip6tables=false',
  ];
  const child = startService(['dockerd', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  stack.defer(() => stopService(child));
  let words = '';
  child.stderr?.on('data', (chunk: Buffer) => (words = (words + chunk.toString()).slice(-2000)));
  child.on('error', (error) => (words = error.message));
  const engine = new EngineApi(socket);
  const deadline = performance.now() + ANSWERS_WITHIN_MS;
  while ((await engine.version()) === undefined) {
    const ended = child.exitCode !== null || child.pid === undefined;
    if (ended || performance.now() > deadline) throw new Error(`dockerd does not answer: ${words.trim()}`);
    await sleep(100);
  }
  return engine;
}

/** Removing through a mount that was left would empty what is mounted there. */
function removeUnmounted(folder: string): void {
  if (readFileSync('/proc/self/mountinfo', 'utf8').includes(folder)) {
    note(`mounts are left below ${folder}: unmount them and remove it`);
    return;
  }
  rmSync(folder, { recursive: true, force: true });
}
