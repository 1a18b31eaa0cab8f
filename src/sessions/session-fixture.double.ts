import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock } from '../core/clock.ts';
import { HandClock } from '../core/hand-clock.double.ts';
import { SILENT_LOG } from '../core/log.ts';
import { EgressGate } from '../egress/gate.ts';
import { networkOpener } from '../egress/open-network.ts';
import type { AuditEntry } from '../policy/audit-entry.ts';
import type { Caller, CommandRequest, SessionRequest } from './api.ts';
import type { ScriptedCommand } from './scripted-command.double.ts';
import { ScriptedDriver, ScriptedHost } from './scripted-driver.double.ts';
import type { LiveSession } from './session.ts';
import { SessionSettings } from './settings.ts';
import { KeptSessions } from './sessions.ts';
import type { SessionsOptions } from './sessions-options.ts';
import type { Volume, VolumeKeep, Volumes } from './volumes.ts';

const NO_PRESETS = { npm: { hosts: [] }, pypi: { hosts: [] }, github: { hosts: [] } };
const NEVER = new AbortController().signal;

/** For tests: what became of volumes. */
export class ScriptedVolumes implements Volumes {
  readonly held = new Set<string>();
  readonly events: string[] = [];

  prepare(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  open(key: string): Promise<Volume> {
    const fresh = !this.held.has(key);
    this.held.add(key);
    this.events.push(fresh ? 'make' : 'share');
    return Promise.resolve({ folder: `/volumes/${key}`, owner: 4711, fresh });
  }

  release(key: string, keep: VolumeKeep): Promise<void> {
    this.held.delete(key);
    this.events.push(`release ${keep}`);
    return Promise.resolve();
  }

  usedBytes(): Promise<number> {
    return Promise.resolve(4096);
  }

  reclaim(keepKeys: ReadonlySet<string>): Promise<void> {
    this.events.push(`reclaim all but ${keepKeys.size}`);
    return Promise.resolve();
  }
}

/** For tests: a folder, a host with cells, and servers one after the other. */
export class SessionFixture {
  readonly folder = mkdtempSync(join(tmpdir(), 'hotcell-sessions-'));
  readonly host = new ScriptedHost();
  readonly clock = new HandClock();
  readonly volumes = new ScriptedVolumes();
  readonly audited: AuditEntry[] = [];
  readonly caller: Caller = { tenant: { name: 'acme', quotas: {} } };
  readonly stranger: Caller = { tenant: { name: 'globex', quotas: {} } };
  driver = new ScriptedDriver(this.host);
  readonly #servers = new Set<KeptSessions>();
  readonly #crashed = new WeakSet<Clock>();

  async open(
    options: Omit<Partial<SessionsOptions>, 'settings'> & { settings?: object } = {},
  ): Promise<KeptSessions> {
    this.driver = new ScriptedDriver(this.host);
    const { settings, ...rest } = options;
    const clock = this.#ownClock();
    const sessions = await KeptSessions.open({
      dir: this.folder,
      server: '{}',
      driver: this.driver,
      volumes: this.volumes,
      engineMounts: false,
      openNetwork: networkOpener('cells', {
        gate: () => Promise.resolve(new EgressGate({ presets: NO_PRESETS, log: SILENT_LOG })),
        clock: this.clock,
        log: SILENT_LOG,
      }),
      caBundle: undefined,
      rules: ['tool-curl'],
      rateLimit: { take: () => {} },
      audit: { append: (entry) => this.audited.push(entry) },
      bootId: 'first',
      clock,
      log: SILENT_LOG,
      ...rest,
      settings: SessionSettings.parse(settings ?? {}),
    });
    this.#servers.add(sessions);
    return sessions;
  }

  /** The clock of one server: it stops with it. */
  #ownClock(): Clock {
    const unlessCrashed = (task: () => void) => (): void => {
      if (!this.#crashed.has(clock)) task();
    };
    const clock: Clock = {
      now: () => this.clock.now(),
      after: (delayMs, task) => this.clock.after(delayMs, unlessCrashed(task)),
      every: (intervalMs, task) => this.clock.every(intervalMs, unlessCrashed(task)),
    };
    return clock;
  }

  /** As kill -9 would: nothing is written any more, nobody listens any more. */
  async crash(sessions: KeptSessions): Promise<void> {
    this.#servers.delete(sessions);
    this.#crashed.add(sessions.options.clock);
    sessions.store.close();
    await this.driver.close();
  }

  async crashAll(): Promise<void> {
    for (const sessions of this.#servers) await this.crash(sessions);
  }

  /** An orderly stop. */
  async stop(sessions: KeptSessions): Promise<void> {
    await sessions.close();
    await this.driver.close();
  }

  async create(sessions: KeptSessions, request: Partial<SessionRequest> = {}): Promise<LiveSession> {
    const { id } = await sessions.create(this.caller, toSessionRequest(request));
    return sessions.find(this.caller, id);
  }

  /** Removes everything. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const sessions of this.#servers) await this.stop(sessions);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function toSessionRequest(rest: Partial<SessionRequest> = {}): SessionRequest {
  const usual = { network: false, dotenv: false, setup: false, limits: {} };
  return { project: 'shop', runtime: 'shell', ...usual, ...rest };
}

export function toExecRequest(command: string, rest: Partial<CommandRequest> = {}): CommandRequest {
  const usual = {
    resetCwd: false,
    env: {},
    background: false,
    onBusy: 'wait',
    reportChanges: false,
  } as const;
  return { command, ...usual, ...rest };
}

/** Begins a command. */
export function begin(
  session: LiveSession,
  command: string,
  rest: Partial<CommandRequest> = {},
): ReturnType<LiveSession['exec']> {
  return session.exec(toExecRequest(command, rest), NEVER);
}

/** A fixture with one session. */
export async function made(
  settings: object = {},
  request: Partial<SessionRequest> = {},
): Promise<{ fixture: SessionFixture; session: LiveSession }> {
  const fixture = new SessionFixture();
  const sessions = await fixture.open({ settings });
  return { fixture, session: await fixture.create(sessions, request) };
}

/** The commands of users in the cell that was made last. */
export function insideOf(fixture: SessionFixture): ScriptedCommand[] {
  return fixture.host.cells.at(-1)?.users ?? [];
}

export function lastOf(fixture: SessionFixture): ScriptedCommand {
  const last = insideOf(fixture).at(-1);
  if (last === undefined) throw new Error('no command was started');
  return last;
}
