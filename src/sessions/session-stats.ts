import type { EndReason, ExecEndReason } from '../core/session-words.ts';

/** What is there at the moment. */
interface Present {
  readonly open: number;
  readonly paused: number;
  readonly runningExecs: number;
  readonly waitingExecs: number;
}

export type SessionStats = ReturnType<SessionCounters['toStats']>;

/** What has happened since the server began. */
export class SessionCounters {
  created = 0;
  /** Taken over after a restart of the server. */
  adopted = 0;
  outputBytes = 0;
  uploads = 0;
  syncs = 0;
  egressRefusals = 0;
  readonly ended = new Map<EndReason, number>();
  readonly execs = new Map<ExecEndReason, number>();

  toStats(now: Present) {
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
