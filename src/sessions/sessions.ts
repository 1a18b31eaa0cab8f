import { HotcellError, messageOf, toHotcellError } from '../core/errors.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { Holding } from '../policy/quotas.ts';
import { requireQuota } from '../policy/quotas.ts';
import type { EndReason } from '../core/session-words.ts';
import type { Caller, SessionRequest, Sessions, SessionView } from './api.ts';
import { toWorkspacePath } from './exec-plan.ts';
import { toNewSession, type NewSession } from './new-session.ts';
import type { LiveSession } from './session.ts';
import type { SessionHost } from './session-host.ts';
import { SessionMaker } from './session-maker.ts';
import { SessionRemains } from './session-remains.ts';
import { SessionRestorer } from './session-restorer.ts';
import { toEndedError } from './session-rows.ts';
import { SessionCounters, type SessionStats } from './session-stats.ts';
import { SessionStore, toStoreError } from './session-store.ts';
import type { SessionsOptions } from './sessions-options.ts';
import { endSessions, leaveSessions } from './stop-sessions.ts';
import { VolumeHolds } from './volume-holds.ts';
import type { VolumeKeep } from './volumes.ts';

/** How long the end of a session waits for its commands to be told of it. */
const LAST_WORDS_MS = 5000;
const FULL_RETRY_S = 30;

interface Making {
  readonly tenant: string;
  readonly holding: Holding;
  readonly done: Promise<LiveSession>;
}

/** All sessions of this server. What is in here is in the store, too, and outlives it. */
export class KeptSessions implements Sessions, SessionHost {
  readonly options: SessionsOptions;
  readonly store: SessionStore;
  readonly counters = new SessionCounters();
  readonly #maker: SessionMaker;
  readonly #holds: VolumeHolds;
  readonly #remains: SessionRemains;
  readonly #restorer: SessionRestorer;
  readonly #live = new Map<string, LiveSession>();
  /** What sessions that are being made will hold. */
  readonly #making = new Map<string, Making>();
  readonly #ending = new Map<string, Promise<void>>();
  readonly #unmade = new Set<string>();
  #stopSweeping: () => void = () => {};
  #isClosed = false;

  private constructor(options: SessionsOptions, store: SessionStore) {
    const { settings, clock, driver, log } = options;
    this.options = options;
    this.store = store;
    this.#holds = new VolumeHolds(options.volumes);
    this.#remains = new SessionRemains({ store, holds: this.#holds, log });
    this.#maker = new SessionMaker(this);
    this.#restorer = new SessionRestorer({
      store,
      driver,
      maker: this.#maker,
      holds: this.#holds,
      remains: this.#remains,
      log,
      adopting: settings.adopting,
      abandonedMs: settings.abandonedMs,
      now: () => clock.now(),
      onAdopted: (session) => {
        this.#keep(session);
        this.counters.adopted++;
      },
      onLost: (reason) => this.counters.countEnd(reason),
    });
  }

  /** Opens the store and takes over what the last server left. Throws SESSIONS_UNAVAILABLE, DATA_TOO_NEW. */
  static async open(options: SessionsOptions): Promise<KeptSessions> {
    const store = SessionStore.open(options.dir, options.server);
    const sessions = new KeptSessions(options, store);
    try {
      await sessions.#restore();
    } catch (error) {
      await sessions.close('keep');
      throw toStoreError(error, options.dir);
    }
    sessions.#stopSweeping = options.clock.every(options.settings.sweepMs, () => sessions.#sweepSafely());
    return sessions;
  }

  outputFolderOf(sessionId: string): string {
    return this.#remains.outputFolderOf(sessionId);
  }

  requireOpen(): void {
    if (this.#isClosed) throw new HotcellError('SHUTTING_DOWN', 'the server is stopping');
  }

  async create({ tenant }: Caller, request: SessionRequest): Promise<SessionView> {
    this.requireOpen();
    const { project, user } = request;
    this.options.rateLimit.take({ tenant: tenant.name, user, project });
    const { settings, driver } = this.options;
    const from = { tenant: tenant.name, settings, driver: driver.name, now: this.options.clock.now() };
    const asked = toNewSession(from, request);
    const { limits } = asked.facts;
    requireQuota(tenant, this.#holdingsOf(tenant.name), limits);
    this.#requireRoom();
    const done = this.#make(asked).finally(() => this.#making.delete(asked.id));
    this.#making.set(asked.id, { tenant: tenant.name, holding: limits, done });
    return (await done).describe();
  }

  async #make(asked: NewSession): Promise<LiveSession> {
    const { id, tenant, facts } = asked;
    const { project, user, volumeKey } = facts;
    const { sessions } = this.store;
    const who = { tenant, user, project, session: id };
    const startedAt = this.options.clock.now();
    sessions.begin(asked, toWorkspacePath(project));
    let release: VolumeKeep | undefined;
    try {
      const volume = await this.#holds.open(volumeKey, facts.limits.diskBytes);
      release = volume.fresh ? 'nothing' : 'all';
      const made = {
        ...facts,
        volumeFolder: volume.folder ?? null,
        volumeOwner: volume.owner,
        volumeFresh: volume.fresh,
      };
      sessions.setFacts(id, made);
      const session = await this.#maker.make({ ...asked, facts: made });
      this.#keep(session);
      this.counters.created++;
      this.options.audit?.append({ action: 'session.create', ...who, outcome: 'ok' });
      const ms = Math.round(this.options.clock.now() - startedAt);
      this.options.log.info(
        { session: toSessionMark(id), cell: session.parts.cell.id, ms },
        'session created',
      );
      return session;
    } catch (error) {
      const { code, message } = toHotcellError(error);
      if (release !== undefined) await this.#holds.release(volumeKey, release).catch(() => {});
      this.#forget(id);
      this.counters.countEnd('create_failed');
      this.options.audit?.append({ action: 'session.create', ...who, outcome: code });
      this.options.log.error({ session: toSessionMark(id), error: message }, 'session not created');
      throw error;
    }
  }

  /** A session that was not made. A full disk refuses even this: then every sweep tries it again. */
  #forget(id: string): void {
    this.#unmade.add(id);
    try {
      this.store.sessions.remove(id);
      this.#unmade.delete(id);
    } catch (error) {
      this.options.log.error({ session: toSessionMark(id), error: messageOf(error) }, 'session row left');
    }
  }

  #keep(session: LiveSession): void {
    this.#live.set(session.id, session);
    session.noteLife();
    void session.parts.cell.gone.then(() => {
      if (this.#isClosed || session.life.isOver) return;
      this.#endSoon(session.id, session.lostReason, 'its cell was ended from outside');
    });
  }

  #endSoon(id: string, reason: EndReason, message: string): void {
    this.end(id, reason, message).catch((error: unknown) => {
      this.options.log.error(
        { session: toSessionMark(id), reason, error: messageOf(error) },
        'session end failed',
      );
    });
  }

  #holdingsOf(tenant: string): Holding[] {
    const live = [...this.#live.values()].filter((session) => session.tenant === tenant);
    const making = [...this.#making.values()].filter((one) => one.tenant === tenant);
    return [...live.map(({ facts }) => facts.limits), ...making.map(({ holding }) => holding)];
  }

  #requireRoom(): void {
    const { max } = this.options.settings;
    if (this.#live.size + this.#making.size + this.#restorer.unreachableCount < max) return;
    throw new HotcellError('TOO_BUSY', `this server has ${max} sessions already`, {
      retryAfterSeconds: FULL_RETRY_S,
    });
  }

  list({ tenant }: Caller): SessionView[] {
    const own = [...this.#live.values()].filter((session) => session.tenant === tenant.name);
    return own.map((session) => session.describe());
  }

  find({ tenant }: Caller, id: string): LiveSession {
    this.requireOpen();
    const session = this.#live.get(id);
    // SECURITY: the answer to somebody else's session is the same as to one that never was.
    if (session !== undefined && session.tenant === tenant.name) {
      const { user, project } = session.facts;
      this.options.rateLimit.take({ tenant: tenant.name, user, project });
      session.life.touch();
      return session;
    }
    const unreachable = this.#restorer.whyUnreachable(id, tenant.name);
    if (unreachable !== undefined) throw unreachable;
    const ended = this.store.sessions.findEnded(id);
    if (ended?.tenant === tenant.name) throw toEndedError(ended);
    throw new HotcellError('SESSION_UNKNOWN', 'there is no such session');
  }

  /** Ends a session for good: its commands, its cell, its files as far as they are not kept. */
  end(sessionId: string, reason: EndReason, message: string): Promise<void> {
    const session = this.#live.get(sessionId);
    if (session === undefined) return this.#ending.get(sessionId) ?? Promise.resolve();
    const at = this.options.clock.now();
    this.store.sessions.beginEnd(sessionId, { at, reason, message });
    const tenant = session.tenant;
    session.close(reason, toEndedError({ tenant, ended_at: at, end_reason: reason, end_message: message }));
    this.#live.delete(sessionId);
    const done = this.#finishEnd(session, reason).finally(() => this.#ending.delete(sessionId));
    this.#ending.set(sessionId, done);
    return done;
  }

  async #finishEnd(session: LiveSession, reason: EndReason): Promise<void> {
    const { id, tenant, facts } = session;
    const running = session.commands.table.living().filter(({ state }) => state === 'running');
    await session.parts.cell.dispose();
    await this.#untilOr(Promise.all(running.map(({ result }) => result)), LAST_WORDS_MS);
    await this.#remains.remove(id, facts.volumeKey, reason);
    this.counters.countEnd(reason);
    const action = reason === 'expired' ? 'session.expire' : 'session.delete';
    const { user, project } = facts;
    this.options.audit?.append({ action, tenant, user, project, session: id, outcome: reason });
    this.options.log.info(
      { session: toSessionMark(id), cell: session.parts.cell.id, reason },
      'session ended',
    );
  }

  async #untilOr(work: Promise<unknown>, mostMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.options.clock.after(mostMs, resolve);
    await Promise.race([work, promise]);
    cancel();
  }

  /** SECURITY: nothing that goes wrong here, such as a full disk, may end the server. */
  #sweepSafely(): void {
    try {
      this.#sweep();
    } catch (error) {
      this.options.log.error({ error: messageOf(error) }, 'session sweep failed');
    }
  }

  #sweep(): void {
    const now = this.options.clock.now();
    const { endedMs, endedMax } = this.options.settings;
    for (const session of this.#live.values()) {
      if (session.expiresAt > now) session.noteLife();
      else this.#endSoon(session.id, 'expired', `no request for ${session.facts.ttlMs / 1000} s`);
    }
    for (const id of this.#unmade) this.#forget(id);
    this.store.sessions.forgetEnded(now - endedMs, endedMax);
  }

  async #restore(): Promise<void> {
    if (!this.store.isNew) await this.options.volumes.prepare();
    const isOtherBoot = this.store.noteBoot(this.options.bootId);
    await this.#restorer.restore(isOtherBoot ? 'host_restarted' : 'cell_lost');
  }

  stats(): SessionStats {
    const live = [...this.#live.values()];
    const execs = live.flatMap(({ commands }) => commands.table.living());
    const runningExecs = execs.filter(({ state }) => state === 'running').length;
    return this.counters.toStats({
      open: live.length,
      paused: live.filter(({ life }) => life.isPaused).length,
      runningExecs,
      waitingExecs: execs.length - runningExecs,
    });
  }

  async #stopAll(onStop: 'keep' | 'end'): Promise<void> {
    const live = [...this.#live.values()];
    const { driver, log } = this.options;
    if (onStop === 'end') {
      const end = (id: string): Promise<void> => this.end(id, 'deleted', 'the server stopped');
      await endSessions(live, { driver, store: this.store.id, log, end });
    } else leaveSessions(live, { log, unreachable: this.#restorer.unreachableCount });
  }

  /** Lets go of everything: unless they are to end, sessions and commands in them go on until the next server. */
  async close(onStop = this.options.settings.onStop): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stopSweeping();
    await Promise.allSettled([...this.#making.values()].map(({ done }) => done));
    await Promise.allSettled(this.#ending.values());
    await this.#stopAll(onStop);
    await this.options.volumes.close().catch((error: unknown) => {
      this.options.log.warn({ error: messageOf(error) }, 'volume folder not unmounted');
    });
    this.store.close();
  }
}
