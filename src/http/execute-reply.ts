import type { Isolation } from '../core/cell.ts';
import type { ReachableLimit } from '../core/exec.ts';
import type { RunRequest, RunResult } from '../runs/run.ts';
import type { ExecuteReply, ExecuteRequest, LIMIT_HIT } from '../wire/execute.ts';

const MiB = 1024 * 1024;

const WIRE_NAME_OF_LIMIT: Readonly<Record<ReachableLimit, (typeof LIMIT_HIT)[number]>> = {
  wallTimeMs: 'wall_time',
  memoryBytes: 'memory',
  processes: 'processes',
  outputBytes: 'output',
};

export function toRunRequest(language: string, body: ExecuteRequest): RunRequest {
  return {
    language,
    code: body.code,
    stdin: Buffer.from(body.stdin),
    args: body.args,
    env: body.env,
    files: body.files.map(({ path, content, encoding }) => ({
      path,
      content: Buffer.from(content, encoding),
    })),
    ...(body.timeout_ms === undefined ? {} : { timeoutMs: body.timeout_ms }),
    ...(body.memory_mb === undefined ? {} : { memoryBytes: body.memory_mb * MiB }),
  };
}

export function toExecuteReply(result: RunResult): ExecuteReply {
  const { wallTimeMs, cpuTimeMs, peakMemoryBytes, isolation, limitHit } = result;
  return {
    stdout: result.stdout.text,
    stderr: result.stderr.text,
    exit_code: result.exitCode,
    execution_time_ms: rounded(wallTimeMs, 3),
    container_id: result.cellId,
    language: result.language,
    image_name: result.imageName,
    memory_used_mb: rounded((peakMemoryBytes ?? 0) / MiB, 2),
    cpu_percent: wallTimeMs > 0 ? rounded((cpuTimeMs / wallTimeMs) * 100, 1) : 0,
    file_path: result.filePath,
    ...(result.packages === undefined ? {} : { packages: [...result.packages] }),
    receipt: {
      isolation: toIsolationReply(isolation),
      outcome: result.outcome.kind,
      limit_hit: limitHit === undefined ? null : WIRE_NAME_OF_LIMIT[limitHit],
      wall_time_ms: rounded(wallTimeMs, 3),
      cpu_time_ms: rounded(cpuTimeMs, 3),
      peak_memory_bytes: peakMemoryBytes ?? null,
      warm: result.warm,
      stdout_bytes: result.stdout.totalBytes,
      stderr_bytes: result.stderr.totalBytes,
    },
  };
}

/** As every receipt has it. */
export function toIsolationReply({
  driver,
  runtime,
  walls = 'runtime',
  enforcement,
}: Isolation): ExecuteReply['receipt']['isolation'] {
  return { driver, runtime, walls, enforcement };
}

function rounded(value: number, decimals: number): number {
  const scale = 10 ** decimals;
  return Math.round(value * scale) / scale;
}
