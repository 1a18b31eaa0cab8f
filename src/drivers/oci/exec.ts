import type { ChildProcess } from 'node:child_process';
import { closeSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Exec, ExecOutcome, ExecRequest, KillCause, Usage } from '../../core/exec.ts';
import type { Limits } from '../../core/limits.ts';
import { errnoOf } from '../process/errno.ts';
import { hierarchiesOf, removeCgroups } from './cgroup.ts';
import type { CgroupLayout } from './cgroup-layout.ts';
import { Channel } from './channel.ts';
import type { FifoKits } from './fifo-kit.ts';
import type { HostIdentity } from './identity.ts';
import type { RuntimeCli } from './runtime.ts';

export interface ExecPlace {
  readonly cli: RuntimeCli;
  readonly kits: FifoKits;
  readonly cgroups: CgroupLayout;
  /** The cgroup that the runtime made for the cell, from the folder that is ours. */
  readonly cellCgroup: string;
  readonly cellId: string;
  readonly bundle: string;
}

interface ExecBounds {
  readonly identity: HostIdentity;
  readonly limits: Limits;
  usage(): Promise<Usage>;
}

let execCount = 0;

/**
 * One more command in a running cell. It gets a cgroup of its own below the cell's, because that is the only thing
 * its children cannot leave: whatever they fork, killing the exec finds them there.
 * A runtime with a kernel of its own has no such thing: there the end of one command ends all of them.
 */
export async function startExec(place: ExecPlace, request: ExecRequest, bounds: ExecBounds): Promise<Exec> {
  const name = `exec-${++execCount}`;
  const before = await bounds.usage();
  const subCgroup = await makeSubCgroup(place, name);
  const processFile = join(place.bundle, `${name}.json`);
  await writeFile(processFile, JSON.stringify(toProcess(request, bounds)));
  const kit = await place.kits.take(bounds.identity.hostId);
  const channel = new Channel(kit, ['out', 'err']);
  const farEnds = channel.openFarEnds();
  const runtime = place.cli.exec(place.cellId, { processFile, subCgroup, stdio: [...farEnds] });
  for (const descriptor of farEnds) closeSync(descriptor);

  let cause: KillCause | undefined;
  const killAll = async (): Promise<void> => {
    if (place.cli.traits.ownKernel) await place.cli.sweep(place.cellId);
    else if (subCgroup === undefined) runtime.kill('SIGKILL');
    else await removeCgroups(hierarchiesOf(place.cgroups), join(place.cellCgroup, name));
  };
  const live = async (): Promise<void> => {
    const code = await exitOf(runtime);
    await killAll();
    channel.hangUp();
    await channel.ended;
    const after = await bounds.usage();
    channel.queue.push({ type: 'exit', outcome: toExecOutcome(code, cause), usage: since(before, after) });
    channel.queue.end();
    await rm(processFile, { force: true });
    place.kits.giveBack(kit);
  };
  live().catch((error: unknown) =>
    channel.queue.fail(error instanceof Error ? error : new Error(String(error))),
  );
  return {
    events: channel.queue,
    write: (bytes) => channel.write(bytes),
    closeStdin: () => channel.closeStdin(),
    ended: channel.ended,
    kill: async (why) => {
      cause ??= why;
      await killAll();
    },
  };
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => resolve(code));
    child.on('error', reject);
  });
}

function toExecOutcome(code: number | null, cause: KillCause | undefined): ExecOutcome {
  if (cause !== undefined)
    return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
  // Runtimes report a signal as 128 + n, like shells do.
  if (code === null) return { kind: 'signalled', signal: 9 };
  return code > 128 && code < 128 + 65 ? { kind: 'signalled', signal: code - 128 } : { kind: 'exited', code };
}

function since(before: Usage, after: Usage): Usage {
  return { ...after, cpuMs: Math.max(0, after.cpuMs - before.cpuMs) };
}

function toProcess(request: ExecRequest, bounds: ExecBounds): unknown {
  const files = bounds.limits.openFiles;
  return {
    terminal: false,
    user: { uid: bounds.identity.uid, gid: bounds.identity.uid },
    args: request.argv,
    env: Object.entries(request.env).map(([name, value]) => `${name}=${value}`),
    cwd: request.cwd ?? '/tmp',
    noNewPrivileges: true,
    capabilities: { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] },
    rlimits: [
      { type: 'RLIMIT_NOFILE', hard: files, soft: files },
      { type: 'RLIMIT_CORE', hard: 0, soft: 0 },
    ],
  };
}

async function makeSubCgroup(place: ExecPlace, name: string): Promise<string | undefined> {
  const { cgroups } = place;
  if (cgroups.version === 'none' || place.cli.traits.ownKernel) return undefined;
  for (const mount of hierarchiesOf(cgroups)) {
    const parent = join(mount, place.cellCgroup);
    const made = await mkdir(join(parent, name)).then(
      () => true,
      (error: unknown) => {
        // A hierarchy that the runtime was not shown has no folder for the cell.
        if (errnoOf(error) === 'ENOENT') return false;
        throw error;
      },
    );
    if (!made || !mount.endsWith('/cpuset')) continue;
    // A new v1 cpuset is empty and takes no process until it has been given CPUs and memory nodes.
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      await writeFile(join(parent, name, file), await readFile(join(parent, file)));
    }
  }
  return name;
}
