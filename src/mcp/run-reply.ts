import type { Denial } from '../wire/permissions.ts';
import type { RunReply } from '../wire/run-code.ts';
import type { CodeResult, CodeRun, RunOutput } from '../workbench/api.ts';
import { cutMiddle } from '../lib/cut-text.ts';
import { runUri } from './run-uris.ts';

const KEPT_BYTES = 16 * 1024;

export interface ReplyOptions {
  /** Undefined when the session is gone with the reply. */
  readonly sessionId: string | undefined;
  /** Whether nothing is left out. */
  readonly whole?: boolean;
  readonly warnings?: readonly string[];
}

/** The reply about a run; `result` is undefined while it runs. */
export function toRunReply(run: CodeRun, result: CodeResult | undefined, options: ReplyOptions): RunReply {
  const status = result?.status ?? 'running';
  return {
    success: status === 'ok',
    status,
    run_id: run.id,
    session_id: options.sessionId,
    language: run.language,
    phase: result === undefined ? run.phase : 'ended',
    exitCode: result?.exitCode,
    signal: result?.signal,
    message: result?.message,
    hint: result?.hint,
    ...toOutput(run, result ?? run.output(), options),
    denials: (result?.denials ?? []).map((denial) => withGrant(denial, options.sessionId)),
    packages: [...(result?.packages ?? [])],
    installed: [...(result?.installed ?? [])],
    filesChanged: [...(result?.filesChanged ?? [])],
    durationMs: result?.durationMs ?? Date.now() - run.startedAt,
    phases: { ...result?.phases },
    limits: result?.limits,
    isolation: result?.isolation,
    cell: result?.cellId,
    warnings: [...(options.warnings ?? []), ...(result?.warnings ?? [])],
  };
}

function toOutput(
  run: CodeRun,
  output: RunOutput,
  { sessionId, whole = false }: ReplyOptions,
): Pick<RunReply, 'stdout' | 'stderr' | `${'stdout' | 'stderr'}${'Bytes' | 'CutBytes'}`> {
  const shorten = (stream: 'stdout' | 'stderr') =>
    cutMiddle(output[stream], whole ? Infinity : KEPT_BYTES, (cut) => {
      const place = sessionId === undefined ? '' : `; ${runUri(run.id, stream)} has more`;
      return `\n[… ${cut} bytes left out here${place} …]\n`;
    });
  const stdout = shorten('stdout');
  const stderr = shorten('stderr');
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    stdoutBytes: output.stdoutBytes,
    stderrBytes: output.stderrBytes,
    stdoutCutBytes: output.stdoutCut + stdout.cutBytes,
    stderrCutBytes: output.stderrCut + stderr.cutBytes,
  };
}

/** A session that is gone cannot be granted anything. */
function withGrant(denial: Denial, sessionId: string | undefined): RunReply['denials'][number] {
  if (sessionId === undefined) return denial;
  const fields = { ...denial.permission, session_id: sessionId };
  const known = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, value]],
  );
  const grant = { tool: 'grant_permission' as const, arguments: Object.fromEntries(known) };
  return { ...denial, grant };
}
