import { writeFile } from 'node:fs/promises';
import { toHeartbeatRequest, watchHeartbeat } from '../environment/heartbeat.ts';
import type { FleetConfig } from '../fleet-config.ts';
import { heartbeatFile, type FleetPaths } from '../names.ts';
import type { Board } from '../run/board.ts';
import type { Place } from './place.ts';

interface Watch {
  readonly worker: number;
  readonly paths: FleetPaths;
  readonly config: Pick<FleetConfig, 'heartbeat'>;
  readonly board: Board;
  /** Perhaps more than once. */
  readonly onLost: (reason: string) => void;
}

/** Signs of life, and their absence. A cell that is silent is as good as gone, whatever it does. */
export function watchPlace(place: Place, { worker, paths, config, board, onLost }: Watch): void {
  const { interval_seconds: interval, stall_timeout_seconds: patience } = config.heartbeat;
  let last = Date.now();
  const timer = setInterval(
    () => {
      if (Date.now() - last > patience * 1000) onLost(`no heartbeat for ${patience} s`);
    },
    Math.min(interval, patience) * 250,
  );
  void place.cell.gone.then(() => {
    clearInterval(timer);
    onLost(place.problem ?? 'its cell was ended from outside');
  });
  const beat = async (): Promise<void> => {
    last = Date.now();
    const time = new Date(last).toISOString();
    board.changeWorker(worker, { health_check_at: time });
    const task = board.read().workers[String(worker)]?.current_task ?? null;
    const record = { worker_id: worker, timestamp: time, task_id: task };
    await writeFile(heartbeatFile(paths, worker), `${JSON.stringify(record)}\n`);
  };
  void (async () => {
    try {
      const exec = await place.cell.exec(toHeartbeatRequest(interval));
      await watchHeartbeat(exec, () => void beat().catch(() => {}));
    } catch {
      // The cell is gone, or about to be taken for silent.
    }
  })();
}
