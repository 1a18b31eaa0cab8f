import { readFileSync } from 'node:fs';
import { mkdir, realpath } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Driver, DriverTraits } from '../core/driver.ts';
import { HotcellError, messageOf, toHotcellError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { ownerRecord } from '../drivers/process/owner.ts';
import { LoopVolumes } from '../drivers/volumes/loop-volumes.ts';
import { MemoryVolumes } from '../drivers/volumes/memory-volumes.ts';
import { networkOpener } from '../egress/open-network.ts';
import { AuditLog, SYSTEM_WALL_CLOCK } from '../policy/audit-log.ts';
import { RateLimit } from '../policy/rate-limit.ts';
import type { SessionStats } from '../sessions/session-stats.ts';
import { KeptSessions } from '../sessions/sessions.ts';
import type { Volumes } from '../sessions/volumes.ts';
import type { Config } from './config/config.ts';
import { openMachineGate, readCaBundle } from './machine-gate.ts';
import { NO_SESSION_STATS } from './metrics/session-metrics.ts';
import { SYSTEM_CLOCK } from './system-clock.ts';
import { whyNotOnDisk } from './workspaces.ts';

export interface OpenedSessions {
  /** Undefined where there are none; `problem` says why. */
  readonly sessions: KeptSessions | undefined;
  readonly problem: string | undefined;
  stats(): SessionStats;
  /** Sessions go on without a server until the next one. */
  close(): Promise<void>;
}

/**
 * Takes over the sessions of the last server. A server without sessions still serves everything else; only DATA_TOO_NEW is
 * thrown.
 */
export async function openSessions(config: Config, driver: Driver, log: Log): Promise<OpenedSessions> {
  const { sessions: settings } = config;
  if (!settings.enabled) return without('the setting sessions.enabled is false');
  const unfit = whyNotFit(driver);
  if (unfit !== undefined) return without(unfit);
  const audit = openAudit(config, log);
  const gate = openMachineGate(config, log);
  const asked = sessionsFolder(config);
  try {
    const dir = await makeDirectory(asked);
    const volumes = openVolumes(config, driver.traits, { dir, log });
    const problem = whyNotOnDisk(driver.traits);
    if (problem !== undefined) log.info({ problem }, 'workspaces kept in memory');
    const sessions = await KeptSessions.open({
      settings,
      dir,
      server: await ownerRecord(),
      driver,
      volumes,
      engineMounts: driver.traits.images,
      openNetwork: networkOpener(driver.traits.confines, {
        gate: () => gate.get(),
        clock: SYSTEM_CLOCK,
        log,
      }),
      caBundle: await readCaBundle(),
      rules: settings.rules,
      rateLimit: new RateLimit({ ...settings.rateLimit, clock: SYSTEM_CLOCK }),
      audit,
      bootId: readBootId(),
      clock: SYSTEM_CLOCK,
      log,
    });
    return {
      sessions,
      problem: undefined,
      stats: () => sessions.stats(),
      close: async () => {
        await sessions.close();
        await gate.close();
        await audit?.close();
      },
    };
  } catch (error) {
    await audit?.close();
    const { code, message, hint } = toHotcellError(error);
    // Served without its sessions, nobody would see that this is the wrong version.
    if (code === 'DATA_TOO_NEW') throw error;
    log.warn({ dir: asked, error: message, hint }, 'sessions unavailable');
    return without(message);
  }
}

/** A session needs walls around the whole of it, and cells that outlive the server. */
function whyNotFit({ name, traits, lasting }: Driver): string | undefined {
  if (traits.confines === 'commands')
    return `the ${name} driver makes walls around commands, not around a session`;
  if (traits.confines === 'nothing') return `the ${name} driver has no walls to put a session behind`;
  return lasting === undefined ? `cells of the ${name} driver end with the server` : undefined;
}

function without(problem: string): OpenedSessions {
  return { sessions: undefined, problem, stats: () => NO_SESSION_STATS, close: () => Promise.resolve() };
}

export function openAudit({ sessions: { audit } }: Config, log: Log): AuditLog | undefined {
  return audit.file === undefined
    ? undefined
    : new AuditLog({ ...audit, file: audit.file, log, clock: SYSTEM_WALL_CLOCK });
}

export function openVolumes(
  config: Config,
  traits: DriverTraits | undefined,
  { dir, log }: { readonly dir: string; readonly log: Log },
): Volumes {
  if (whyNotOnDisk(traits) !== undefined) return new MemoryVolumes();
  const keepForMs = config.sessions.keepVolumesMs;
  return new LoopVolumes({ directory: join(dir, 'volumes'), keepForMs, log });
}

/** By its real name: the kernel's table of mounts, which we ask, has no other. */
async function makeDirectory(asked: string): Promise<string> {
  try {
    await mkdir(asked, { recursive: true, mode: 0o700 });
    return await realpath(asked);
  } catch (error) {
    throw new HotcellError('SESSIONS_UNAVAILABLE', `${asked} cannot be used: ${messageOf(error)}`, {
      hint: 'Mend it, or name another folder (setting sessions.dir).',
      cause: error,
    });
  }
}

/** Where sessions are kept; it need not be there yet. */
export function sessionsFolder({
  sessions: { dir },
}: {
  readonly sessions: Pick<Config['sessions'], 'dir'>;
}): string {
  return resolve(dir ?? defaultDirectory());
}

function defaultDirectory(): string {
  if (process.geteuid?.() === 0) return '/var/lib/hotcell';
  return join(process.env['XDG_DATA_HOME'] ?? join(homedir(), '.local/share'), 'hotcell');
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
