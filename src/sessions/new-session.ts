import { randomBytes } from 'node:crypto';
import type { Cell } from '../core/cell.ts';
import { HotcellError } from '../core/errors.ts';
import { DEFAULT_LIMITS, type Limits } from '../core/limits.ts';
import type { SessionRequest } from './api.ts';
import { newSessionId, toVolumeKey } from './ids.ts';
import type { SessionSettings } from './settings.ts';
import type { SessionFacts } from './stored-session.ts';

/** A session that was asked for and granted. */
export interface NewSession {
  readonly id: string;
  readonly tenant: string;
  readonly facts: SessionFacts;
  /** Undefined: no network. */
  readonly allow: readonly string[] | undefined;
}

/** One whose cell is there, now or from an earlier life of the server. */
export interface BegunSession extends NewSession {
  readonly cell: Cell;
  readonly cwd: string;
  readonly touchedAt: number;
  readonly pausedAt: number | undefined;
  readonly syncIndex: string | undefined;
}

const MiB = 1024 * 1024;

/** Throws for what is more than the operator grants. */
export function toNewSession(
  from: {
    readonly tenant: string;
    readonly settings: SessionSettings;
    readonly driver: string;
    readonly now: number;
  },
  request: SessionRequest,
): NewSession {
  const { tenant, settings } = from;
  const { project, user, runtime, network } = request;
  return {
    id: newSessionId(),
    tenant,
    allow: network === false ? undefined : network === true ? settings.network : network,
    facts: {
      project,
      user: user ?? null,
      runtime,
      cellName: `session-${runtime}-${randomBytes(2).toString('hex')}`,
      driver: from.driver,
      limits: toSessionLimits(request.limits, settings),
      ttlMs: toTtlMs(request.ttlMs, settings),
      volumeKey: toVolumeKey(tenant, user, project),
      // Known when the volume is there.
      volumeFolder: null,
      volumeOwner: 0,
      volumeFresh: false,
      dotenv: request.dotenv,
      setup: request.setup,
      createdAt: from.now,
    },
  };
}

function toSessionLimits(asked: SessionRequest['limits'], settings: SessionSettings): Limits {
  const { ceilings, limits } = settings;
  requireAtMost('limits.cpus', asked.cpus, ceilings.cpus);
  requireAtMost('limits.memory_mb', asked.memoryBytes, ceilings.memoryBytes, MiB);
  requireAtMost('limits.disk_mb', asked.diskBytes, ceilings.diskBytes, MiB);
  requireAtMost('limits.processes', asked.processes, ceilings.processes);
  return {
    // Time and output are bounded per command, by us.
    ...DEFAULT_LIMITS,
    openFiles: limits.openFiles,
    cpus: asked.cpus ?? limits.cpus,
    memoryBytes: asked.memoryBytes ?? limits.memoryBytes,
    diskBytes: asked.diskBytes ?? limits.diskBytes,
    processes: asked.processes ?? limits.processes,
  };
}

function toTtlMs(asked: number | undefined, settings: SessionSettings): number {
  requireAtMost('ttl_s', asked, settings.ceilings.ttlMs, 1000);
  return asked ?? settings.ttlMs;
}

/** Fields and units are those that callers know. */
export function requireAtMost(field: string, asked: number | undefined, most: number, unit = 1): void {
  if (asked === undefined || asked <= most) return;
  const words = `${field}: at most ${most / unit} here, got ${asked / unit}`;
  throw new HotcellError('LIMIT_TOO_HIGH', words, { field });
}
