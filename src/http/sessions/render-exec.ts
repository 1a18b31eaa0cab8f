import type { CommandRequest, ExecReport, ExecView, OutputPart } from '../../sessions/api.ts';
import type { ExecResult as DomainResult } from '../../sessions/stored-exec.ts';
import { toIsoTime } from '../../sessions/iso-time.ts';
import type {
  ExecReply,
  ExecResult,
  KillReply,
  OutputChunk,
  OutputReply,
  SessionExecReply,
  SessionExecRequest,
} from '../../wire/session-exec.ts';
import { times } from './render-session.ts';

export function toCommandRequest(body: SessionExecRequest): CommandRequest {
  const { command, cwd, env, stdin, background } = body;
  return {
    command,
    cwd,
    env,
    stdin,
    background,
    timeoutMs: times(body.timeout_s, 1000),
    resetCwd: body.reset_cwd,
    onBusy: body.on_busy,
    reportChanges: body.report_changed_files,
  };
}

export function toExecResult(result: DomainResult): ExecResult {
  const { killedBy, ...end } = result.end;
  return {
    exec_id: result.execId,
    ok: result.ok,
    exit_code: result.exitCode,
    cwd: result.cwd,
    cwd_note: result.cwdNote,
    duration_ms: result.durationMs,
    end: { ...end, killed_by: killedBy },
    limits_reached: [...result.limitsReached],
    cpu_time_ms: result.cpuTimeMs,
    peak_memory_bytes: result.peakMemoryBytes,
    stdout_bytes: result.stdoutBytes,
    stderr_bytes: result.stderrBytes,
    egress_refused: [...result.egressRefused],
    ...(result.changedFiles === undefined ? {} : { changed_files: [...result.changedFiles] }),
  };
}

export function toExecReply({ kind, result, ...view }: ExecView): ExecReply {
  return {
    exec_id: view.id,
    command: view.command,
    background: kind === 'background',
    terminal: kind === 'terminal',
    started_at: toIsoTime(view.startedAt),
    output_bytes: view.outputBytes,
    state: view.state,
    result: result === undefined ? null : toExecResult(result),
  };
}

export function toSessionExecReply(report: ExecReport): SessionExecReply {
  const { stdout, stderr, cutBytes } = report;
  return { ...toExecResult(report), stdout, stderr, output_cut_bytes: cutBytes };
}

export function toOutputReply({ from, next, chunks, cut, result }: OutputPart): OutputReply {
  return {
    from,
    next,
    chunks: chunks.map(toChunk),
    cut: [...cut],
    result: result === undefined ? null : toExecResult(result),
  };
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder('utf-8', { ignoreBOM: true });

function toChunk({ stream, from, bytes }: OutputPart['chunks'][number]): OutputChunk {
  try {
    return { stream, from, data: strict.decode(bytes) };
  } catch {
    return { stream, from, data: lenient.decode(bytes), base64: Buffer.from(bytes).toString('base64') };
  }
}

export function toKillReply(ids: readonly string[]): KillReply {
  return { killed: ids.length > 0, exec_ids: [...ids] };
}
