import { setTimeout as sleep } from 'node:timers/promises';
import type { CellUsage, LeftCell } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { EngineRefusal, isRefusal, type Engine } from './engine.ts';
import { OURS_FILTER, isOrphan, toOwnFilter, type Labels } from '../engine/owner-labels.ts';

const REMOVAL_MS = 30_000;
const LOOK_MS = 50;
/** How long an engine may take to note that a container has ended, and then why. */
const END_MS = 10_000;
const REASON_MS = 2000;
const SHORT_ID = 12;

interface OwnedCell extends LeftCell {
  /** The engine's own; a short one might be the name of somebody else's container. */
  readonly container: string;
  readonly labels: Labels;
  readonly isPaused: boolean;
}

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
  const stats = await engine
    .call('count', (docker) => docker.getContainer(id).stats({ stream: false, 'one-shot': true }))
    .catch((error: unknown) => {
      if (!isRefusal(error, 404)) throw error;
      throw new HotcellError('CELL_LOST', 'the cell is gone: its container has ended', { cause: error });
    });
  return {
    cpuMs: (stats.cpu_stats?.cpu_usage?.total_usage ?? 0) / 1e6,
    memoryBytes: stats.memory_stats?.usage,
    processes: stats.pids_stats?.current,
  };
}

/** Containers with these labels, as the cells that they are. */
export async function listCells(engine: Engine, filters: { label: string[] }): Promise<OwnedCell[]> {
  const containers = await engine.call('list containers', (docker) =>
    docker.listContainers({ all: true, filters }),
  );
  return containers.map(({ Id, Labels, Created, State }) => ({
    id: Id.slice(0, SHORT_ID),
    container: Id,
    since: Created * 1000,
    labels: Labels,
    isPaused: State === 'paused',
  }));
}

/** Those of servers that are no longer alive. */
export async function findOrphans(engine: Engine): Promise<OwnedCell[]> {
  const cells = await listCells(engine, OURS_FILTER);
  const verdicts = await Promise.all(cells.map(({ labels }) => isOrphan(labels)));
  return cells.filter((_, index) => verdicts[index]);
}

/**
 * Removes the containers, then the volumes, of servers that are no longer alive. Returns the ids of those containers that
 * are gone: one that cannot be removed now is left to the next look and must not keep anybody from serving.
 */
export async function removeOrphans(engine: Engine): Promise<string[]> {
  const orphans = await findOrphans(engine);
  const removals = await Promise.allSettled(
    orphans.map(({ container }) => removeContainer(engine, container)),
  );
  const { Volumes } = await engine.call('list volumes', (docker) =>
    docker.listVolumes({ filters: OURS_FILTER }),
  );
  for (const { Name, Labels } of Volumes ?? []) {
    if (await isOrphan(Labels)) await removeVolume(engine, Name).catch(() => {});
  }
  return orphans.filter((_, index) => removals[index]?.status === 'fulfilled').map(({ id }) => id);
}

/** Every container that this server has made, also one that a hanging engine made after we had given up on it. */
export async function removeOwn(engine: Engine, labels: Labels): Promise<void> {
  const own = await listCells(engine, toOwnFilter(labels));
  await Promise.all(own.map(({ container }) => removeContainer(engine, container)));
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
