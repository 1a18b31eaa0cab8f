import type { KeptOutput, RunResult } from '../../runs/run.ts';

/** What `hotcell run --json` prints. */
export function toRunJson(result: RunResult): Record<string, unknown> {
  return {
    outcome: result.outcome,
    exit_code: result.exitCode,
    limit_hit: result.limitHit ?? null,
    stdout: toOutputJson(result.stdout),
    stderr: toOutputJson(result.stderr),
    wall_time_ms: result.wallTimeMs,
    cpu_time_ms: result.cpuTimeMs,
    peak_memory_bytes: result.peakMemoryBytes ?? null,
    cell_id: result.cellId,
    language: result.language,
    image_name: result.imageName,
    file_path: result.filePath,
    isolation: result.isolation,
    warm: result.warm,
  };
}

function toOutputJson(output: KeptOutput): Record<string, unknown> {
  return { text: output.text, total_bytes: output.totalBytes, truncated: output.truncated };
}
