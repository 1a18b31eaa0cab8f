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
    const result: CheckResult = {
      check: check.name,
      required: check.required,
      ...(isOver ? SKIPPED : await runCheck(place, check, parts.signal)),
    };
    results.push(result);
    parts.onResult(result);
    isOver ||= result.required && result.result !== 'pass';
    await mkdir(parts.folder, { recursive: true });
    // In files they have the name that the configuration has for them.
    const { check: gate, ...rest } = result;
    const record = { gate, ...rest, commit: parts.commit, command: check.command };
    await writeFile(join(parts.folder, `${gate}.json`), `${JSON.stringify(record, undefined, 2)}\n`);
  }
  return results;
}

type Ran = Omit<CheckResult, 'check' | 'required'>;

const SKIPPED: Ran = { result: 'skip', exitCode: null, output: '', durationMs: 0 };

async function runCheck(place: Place, check: QualityCheck, signal: AbortSignal): Promise<Ran> {
  const started = performance.now();
  const request = { argv: ['bash', '-c'], env: {}, verbatim: { argv: [check.command], env: {} } } as const;
  try {
    const run = await place.run(request, { timeMs: check.timeout * 1000, signal });
    const output = `${run.stdout}\n${run.stderr}`.trim().slice(-WORDS_KEPT);
    return {
      result: run.reason === 'timeout' ? 'timeout' : run.code === 0 ? 'pass' : 'fail',
      exitCode: run.code,
      output: run.code === 0 ? output : await place.explainFailure(output),
      durationMs: Math.round(performance.now() - started),
    };
  } catch (error) {
    return { ...SKIPPED, result: 'error', output: messageOf(error) };
  }
}
