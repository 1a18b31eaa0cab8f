import type { Exec, ExecRequest } from '../../core/exec.ts';

/** Started in a cell, it gives a sign of life every so often, until its stdin is closed. */
export function toHeartbeatRequest(intervalSeconds: number): ExecRequest {
  return { argv: ['perl', '{guest}/heartbeat.pl', String(intervalSeconds)], env: {} };
}

/** SECURITY: the programs of a cell may speak in its place, without end; nobody is called more often than this. */
const SHORTEST_MS = 100;

/**
 * Tells of the signs of life of a cell. What they say is not looked at: that there are some is all. Resolves when no more will
 * come: the program has ended, or the cell was lost. `now` is of a clock that only goes forward, in milliseconds.
 */
export async function watchHeartbeat(
  exec: Exec,
  onBeat: () => void,
  now: () => number = () => performance.now(),
): Promise<'exited' | 'lost'> {
  let last = Number.NEGATIVE_INFINITY;
  try {
    for await (const event of exec.events) {
      if (event.type !== 'stdout' || now() - last < SHORTEST_MS) continue;
      last = now();
      onBeat();
    }
    return 'exited';
  } catch {
    return 'lost';
  }
}
