import type { EndReason, ExecEndReason } from '../core/session-words.ts';

export interface SessionStats {
  readonly open: number;
  readonly paused: number;
  readonly created: number;
  /** Taken over after a restart of the server. */
  readonly adopted: number;
  readonly ended: Readonly<Partial<Record<EndReason, number>>>;
  readonly runningExecs: number;
  readonly waitingExecs: number;
  readonly execs: Readonly<Partial<Record<ExecEndReason, number>>>;
  readonly outputBytes: number;
  readonly uploads: number;
  readonly syncs: number;
  readonly egressRefusals: number;
}

/** What has happened since the server began. */
export class SessionCounters {
  created = 0;
  adopted = 0;
  outputBytes = 0;
  uploads = 0;
  syncs = 0;
  egressRefusals = 0;
  readonly ended = new Map<EndReason, number>();
  readonly execs = new Map<ExecEndReason, number>();

  /** Together with what is there at the moment. */
  toStats(now: Pick<SessionStats, 'open' | 'paused' | 'runningExecs' | 'waitingExecs'>): SessionStats {
    const { created, adopted, outputBytes, uploads, syncs, egressRefusals } = this;
    const ended = Object.fromEntries(this.ended);
    const execs = Object.fromEntries(this.execs);
    return { ...now, created, adopted, ended, execs, outputBytes, uploads, syncs, egressRefusals };
  }

  countEnd(reason: EndReason): void {
    this.ended.set(reason, (this.ended.get(reason) ?? 0) + 1);
  }

  countExec(reason: ExecEndReason): void {
    this.execs.set(reason, (this.execs.get(reason) ?? 0) + 1);
  }
}
