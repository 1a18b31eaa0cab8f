import { randomBytes } from 'node:crypto';
import { HotcellError } from '../core/errors.ts';
import { DEFAULT_LIMITS, type Limits } from '../core/limits.ts';
import type { CreateSessionRequest } from '../wire/sessions.ts';
import { newSessionId, toVolumeKey } from './ids.ts';
import type { SessionFacts } from './session-rows.ts';
import type { SessionSettings } from './settings.ts';

/** A session that was asked for and granted. */
export interface NewSession {
  readonly id: string;
  readonly tenant: string;
  readonly facts: SessionFacts;
  /** Undefined: no network. */
  readonly allow: readonly string[] | undefined;
}

const MiB = 1024 * 1024;

/** Throws for what is more than the operator grants. */
export function toNewSession(
  from: { readonly tenant: string; readonly settings: SessionSettings; readonly now: number },
  request: CreateSessionRequest,
): NewSession {
  const { tenant, settings } = from;
  const { project_id: project, user_id: user, runtime_type: runtime, network } = request;
  return {
    id: newSessionId(),
    tenant,
    allow: network === false ? undefined : network === true ? settings.network : network,
    facts: {
      project,
      user: user ?? null,
      runtime,
      cellName: `session-${runtime}-${randomBytes(2).toString('hex')}`,
      limits: toSessionLimits(request.limits, settings),
      ttlMs: toTtlMs(request.ttl_s, settings),
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

function toSessionLimits(asked: CreateSessionRequest['limits'], settings: SessionSettings): Limits {
  const { ceilings, limits } = settings;
  requireAtMost('limits.cpus', asked.cpus, ceilings.cpus);
  requireAtMost('limits.memory_mb', asked.memory_mb, ceilings.memoryBytes / MiB);
  requireAtMost('limits.disk_mb', asked.disk_mb, ceilings.diskBytes / MiB);
  requireAtMost('limits.processes', asked.processes, ceilings.processes);
  return {
    // Time and output are bounded per command, by us.
    ...DEFAULT_LIMITS,
    openFiles: limits.openFiles,
    cpus: asked.cpus ?? limits.cpus,
    memoryBytes: asked.memory_mb === undefined ? limits.memoryBytes : asked.memory_mb * MiB,
    diskBytes: asked.disk_mb === undefined ? limits.diskBytes : asked.disk_mb * MiB,
    processes: asked.processes ?? limits.processes,
  };
}

function toTtlMs(seconds: number | undefined, settings: SessionSettings): number {
  if (seconds === undefined) return settings.ttlMs;
  requireAtMost('ttl_s', seconds, settings.ceilings.ttlMs / 1000);
  return seconds * 1000;
}

function requireAtMost(field: string, asked: number | undefined, most: number): void {
  if (asked === undefined || asked <= most) return;
  throw new HotcellError('LIMIT_TOO_HIGH', `${field}: at most ${most} here, got ${asked}`, { field });
}
