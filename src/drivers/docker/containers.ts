import { setTimeout as sleep } from 'node:timers/promises';
import type { CellUsage } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { EngineRefusal, isRefusal, type Engine } from './engine.ts';
import { OURS_FILTER, isOrphan, toOwnFilter, type Labels } from '../engine/owner-labels.ts';

const REMOVAL_MS = 30_000;
const LOOK_MS = 50;
/** How long an engine may take to note that a container has ended, and then why. */
const END_MS = 10_000;
const REASON_MS = 2000;

/** Removes a container, running or not, and waits until the engine knows nothing of it any more. */
export async function removeContainer(engine: Engine, id: string): Promise<void> {
  const deadline = performance.now() + REMOVAL_MS;
  for (;;) {
    try {
      await engine.call('remove a container', (docker) =>
        docker.getContainer(id).remove({ force: true, v: true }),
      );
      return;
    } catch (error) {
      if (isRefusal(error, 404)) return;
      // Somebody is removing it already: containers remove themselves when they end.
      if (!isRefusal(error, 409) || performance.now() > deadline) throw error;
      await sleep(LOOK_MS);
    }
  }
}

/** Of a container that has just ended; one that is gone cannot be asked. A busy engine notes the reason after the end. */
export async function wasOutOfMemory(engine: Engine, id: string): Promise<boolean> {
  const startedAt = performance.now();
  let endedAt: number | undefined;
  try {
    for (;;) {
      const { State } = await engine.call('describe a container', (docker) =>
        docker.getContainer(id).inspect(),
      );
      if (State.OOMKilled) return true;
      const now = performance.now();
      if (!State.Running) endedAt ??= now;
      if (now - startedAt > END_MS || (endedAt !== undefined && now - endedAt > REASON_MS)) return false;
      await sleep(LOOK_MS);
    }
  } catch {
    return false;
  }
}

/** What a container uses at the moment, as the engine counts it. */
export async function readUsage(engine: Engine, id: string): Promise<CellUsage> {
  const stats = await engine.call('count', (docker) =>
    docker.getContainer(id).stats({ stream: false, 'one-shot': true }),
  );
  return {
    cpuMs: (stats.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e6,
    memoryBytes: stats.memory_stats?.usage,
    processes: stats.pids_stats?.current,
  };
}

/**
 * Removes the containers, then the volumes, of servers that are no longer alive. Returns the ids of those containers that
 * are gone: one that cannot be removed now is left to the next look and must not keep anybody from serving.
 */
export async function removeOrphans(engine: Engine): Promise<string[]> {
  const containers = await engine.call('list containers', (docker) =>
    docker.listContainers({ all: true, filters: OURS_FILTER }),
  );
  const orphans: typeof containers = [];
  for (const container of containers) if (await isOrphan(container.Labels)) orphans.push(container);
  const removals = await Promise.allSettled(orphans.map(({ Id }) => removeContainer(engine, Id)));
  const { Volumes } = await engine.call('list volumes', (docker) =>
    docker.listVolumes({ filters: OURS_FILTER }),
  );
  for (const { Name, Labels } of Volumes ?? []) {
    if (await isOrphan(Labels)) await removeVolume(engine, Name).catch(() => {});
  }
  return orphans
    .filter((_, index) => removals[index]?.status === 'fulfilled')
    .map(({ Id }) => Id.slice(0, 12));
}

/** Every container that this server has made, also one that a hanging engine made after we had given up on it. */
export async function removeOwn(engine: Engine, labels: Labels): Promise<void> {
  const containers = await engine.call('list containers', (docker) =>
    docker.listContainers({ all: true, filters: toOwnFilter(labels) }),
  );
  await Promise.all(containers.map(({ Id }) => removeContainer(engine, Id)));
}

export async function removeVolume(engine: Engine, name: string): Promise<void> {
  try {
    await engine.call('remove a volume', (docker) => docker.getVolume(name).remove({ force: true }));
  } catch (error) {
    if (!isRefusal(error, 404)) throw error;
  }
}

/** What the engine refused, in words for whoever needs the cell. */
export function toCellError(error: unknown, cell: string, image: string): unknown {
  if (!(error instanceof EngineRefusal)) return error;
  const { words } = error;
  if (/no space left on device|disk quota exceeded/i.test(words)) {
    return new HotcellError(
      'DRIVER_UNAVAILABLE',
      `cell ${cell} did not start: the engine's disk is full: ${words}`,
      {
        hint: 'Free space in the data root of the engine, for instance: docker system prune',
        cause: error,
      },
    );
  }
  if (/OOM.?killed|memory limit too low|minimum memory limit/i.test(words)) {
    return new HotcellError('LIMIT_TOO_LOW', `memory_mb: too little to start a cell: ${words}`, {
      field: 'memory_mb',
      cause: error,
    });
  }
  const noAgent =
    /"?perl"?: (executable file not found|no such file)|exec: "perl"|perl: not found|file .perl. not found/i.test(
      words,
    );
  return new HotcellError(
    'CELL_START_FAILED',
    noAgent
      ? `image ${image} has no perl, which the agent of a cell needs`
      : `cell ${cell} did not start: ${words}`,
    {
      cause: error,
      ...(noAgent ? { hint: 'Use an image made from Debian, or one of ours: hotcell build' } : {}),
    },
  );
}
