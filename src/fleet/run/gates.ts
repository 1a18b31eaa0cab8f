import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import type { QualityGate } from '../fleet-config.ts';
import type { Place } from '../worker/place.ts';

export interface GateResult {
  readonly gate: string;
  readonly result: 'pass' | 'fail' | 'timeout' | 'error' | 'skip';
  readonly required: boolean;
  readonly exitCode: number | null;
  readonly output: string;
  readonly durationMs: number;
}

export interface GatesParts {
  readonly gates: readonly QualityGate[];
  /** Where the results are kept. */
  readonly folder: string;
  readonly commit: string;
  readonly signal: AbortSignal;
  /** A cell of its own with what was merged: an agent that left something behind in its own cell is not heard here. */
  openPlace(): Promise<Place>;
  onResult(result: GateResult): void;
}

const WORDS_KEPT = 4000;

/** Runs the gates one after the other, up to the first required one that does not pass; the others are skipped. */
export async function runGates(parts: GatesParts): Promise<GateResult[]> {
  const results: GateResult[] = [];
  if (parts.gates.length === 0) return results;
  await using place = await parts.openPlace();
  let isOver = false;
  for (const gate of parts.gates) {
    const result: GateResult = isOver ? toSkipped(gate) : await runGate(place, gate, parts.signal);
    results.push(result);
    parts.onResult(result);
    isOver ||= result.required && result.result !== 'pass';
    await mkdir(parts.folder, { recursive: true });
    await writeFile(
      join(parts.folder, `${gate.name}.json`),
      `${JSON.stringify({ ...result, commit: parts.commit, command: gate.command }, undefined, 2)}\n`,
    );
  }
  return results;
}

async function runGate(place: Place, gate: QualityGate, signal: AbortSignal): Promise<GateResult> {
  const started = performance.now();
  const about = { gate: gate.name, required: gate.required };
  const request = { argv: ['bash', '-c'], env: {}, verbatim: { argv: [gate.command], env: {} } } as const;
  try {
    const run = await place.run(request, { timeMs: gate.timeout * 1000, signal });
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

function toSkipped(gate: QualityGate): GateResult {
  return {
    gate: gate.name,
    required: gate.required,
    result: 'skip',
    exitCode: null,
    output: '',
    durationMs: 0,
  };
}
