import type { EgressReport, SessionDetail, SessionRequest, SessionView } from '../../sessions/api.ts';
import { toIsoTime } from '../../sessions/iso-time.ts';
import type { EgressReply } from '../../wire/egress.ts';
import { toIsolationReply } from '../execute-reply.ts';
import type { CreateSessionRequest, SessionDetailReply, SessionReply } from '../../wire/sessions.ts';

const MiB = 1024 * 1024;

export function toSessionRequest(body: CreateSessionRequest): SessionRequest {
  const { project_id: project, runtime_type: runtime, user_id: user, ttl_s: ttl, limits, ...rest } = body;
  return {
    ...rest,
    project,
    runtime,
    user,
    ttlMs: times(ttl, 1000),
    limits: {
      cpus: limits.cpus,
      memoryBytes: times(limits.memory_mb, MiB),
      diskBytes: times(limits.disk_mb, MiB),
      processes: limits.processes,
    },
  };
}

export function times(count: number | undefined, unit: number): number | undefined {
  return count === undefined ? undefined : count * unit;
}

export function toSessionReply(view: SessionView): SessionReply {
  const { isolation, limits } = view;
  return {
    session_id: view.id,
    workspace_path: view.workspace,
    project_id: view.project,
    user_id: view.user,
    runtime_type: view.runtime,
    state: view.state,
    cwd: view.cwd,
    created_at: toIsoTime(view.createdAt),
    expires_at: toIsoTime(view.expiresAt),
    expires_soon: view.expiresSoon,
    network: [...view.network],
    limits: {
      cpus: limits.cpus,
      memory_mb: Math.floor(limits.memoryBytes / MiB),
      disk_mb: Math.floor(limits.diskBytes / MiB),
      processes: limits.processes,
    },
    workspace_storage: view.storage,
    default_command: view.defaultCommand,
    isolation: toIsolationReply(isolation),
  };
}

export function toSessionDetailReply(detail: SessionDetail): SessionDetailReply {
  const { usage } = detail;
  return {
    ...toSessionReply(detail),
    usage: {
      cpu_time_ms: usage.cpuMs,
      memory_bytes: usage.memoryBytes ?? null,
      processes: usage.processes ?? null,
      disk_bytes: usage.diskBytes ?? null,
      running: [...usage.running],
    },
  };
}

const NO_NETWORK: EgressReport = { allow: [], hosts: [], allowedCount: 0, refusedCount: 0, refusals: [] };

export function toEgressReply(report: EgressReport | undefined): EgressReply {
  const { allow, hosts, allowedCount, refusedCount, refusals } = report ?? NO_NETWORK;
  return {
    enabled: report !== undefined,
    allow: [...allow],
    hosts: [...hosts],
    allowed_count: allowedCount,
    refused_count: refusedCount,
    refusals: [...refusals],
  };
}
