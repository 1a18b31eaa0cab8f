import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { QualityCheck } from '../fleet-config.ts';
import type { Place } from '../worker/place.ts';

export interface CheckResult {
  readonly check: string;
  readonly result: 'pass' | 'fail' | 'timeout' | 'error' | 'skip';
  readonly required: boolean;
  readonly exitCode: number | null;
  readonly output: string;
  readonly durationMs: number;
}

export interface ChecksParts {
  readonly checks: readonly QualityCheck[];
  /** Where the results are kept. */
  readonly folder: string;
  readonly commit: string;
  readonly signal: AbortSignal;
  /** A cell of its own with what was merged: an agent that left something behind in its own cell is not heard here. */
  openPlace(): Promise<Place>;
  onResult(result: CheckResult): void;
}

const WORDS_KEPT = 4000;

/** Runs the checks one after the other, up to the first required one that does not pass; the others are skipped. */
export async function runChecks(parts: ChecksParts): Promise<CheckResult[]> {
  const results: CheckResult[] = [];
  if (parts.checks.length === 0) return results;
  await using place = await parts.openPlace();
  let isOver = false;
  for (const check of parts.checks) {
    const result: CheckResult = isOver ? toSkipped(check) : await runCheck(place, check, parts.signal);
    results.push(result);
    parts.onResult(result);
    isOver ||= result.required && result.result !== 'pass';
    await mkdir(parts.folder, { recursive: true });
    await writeFile(
      join(parts.folder, `${check.name}.json`),
      `${JSON.stringify(toFile(result, { commit: parts.commit, command: check.command }), undefined, 2)}\n`,
    );
  }
  return results;
}

/** In files they have the name that the configuration has for them. */
function toFile({ check, ...result }: CheckResult, more: object): object {
  return { gate: check, ...result, ...more };
}

async function runCheck(place: Place, check: QualityCheck, signal: AbortSignal): Promise<CheckResult> {
  const started = performance.now();
  const about = { check: check.name, required: check.required };
  const request = { argv: ['bash', '-c'], env: {}, verbatim: { argv: [check.command], env: {} } } as const;
  try {
    const run = await place.run(request, { timeMs: check.timeout * 1000, signal });
    return {
      ...about,
      result: run.reason === 'timeout' ? 'timeout' : run.code === 0 ? 'pass' : 'fail',
      exitCode: run.code,
      output: `${run.stdout}\n${run.stderr}`.trim().slice(-WORDS_KEPT),
      durationMs: Math.round(performance.now() - started),
    };
  } catch (error) {
    return { ...about, result: 'error', exitCode: null, output: messageOf(error), durationMs: 0 };
  }
}

function toSkipped(check: QualityCheck): CheckResult {
  return {
    check: check.name,
    required: check.required,
    result: 'skip',
    exitCode: null,
    output: '',
    durationMs: 0,
  };
}
