import type { Exec, ExecRequest } from '../../core/exec.ts';

/** Started in a cell, it gives a sign of life every so often, until its stdin is closed. */
export function toHeartbeatRequest(intervalSeconds: number): ExecRequest {
  return { argv: ['perl', '{guest}/heartbeat.pl', String(intervalSeconds)], env: {} };
}

export interface HeartbeatOptions {
  onBeat(): void;
  /** In milliseconds, of a clock that only goes forward. */
  readonly now?: () => number;
}

export interface Heartbeat {
  /** Resolves when no more will come: the program has ended, or the cell was lost. */
  readonly ended: Promise<'exited' | 'lost'>;
  stop(): void;
}

/** SECURITY: the programs of a cell may speak in its place, without end; nobody is called more often than this. */
const SHORTEST_MS = 100;

/** Tells of the signs of life of a cell. What they say is not looked at: that there are some is all. */
export function watchHeartbeat(exec: Exec, options: HeartbeatOptions): Heartbeat {
  const { now = () => performance.now() } = options;
  let last = Number.NEGATIVE_INFINITY;
  const watch = async (): Promise<'exited' | 'lost'> => {
    try {
      for await (const event of exec.events) {
        if (event.type !== 'stdout' || now() - last < SHORTEST_MS) continue;
        last = now();
        options.onBeat();
      }
      return 'exited';
    } catch {
      return 'lost';
    }
  };
  return { ended: watch(), stop: () => exec.closeStdin() };
}
