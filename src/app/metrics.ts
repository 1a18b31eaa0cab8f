import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RunResult } from '../runs/run.ts';

export interface Gauges {
  load(): { running: number; waiting: number };
  ready(): readonly { language: string; cells: number }[];
}

/** What Prometheus reads. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #runs = new Counter({
    name: 'hotcell_runs_total',
    help: 'Finished runs by language and outcome',
    labelNames: ['language', 'outcome', 'limit', 'warm'] as const,
    registers: [this.#registry],
  });
  readonly #seconds = new Histogram({
    name: 'hotcell_run_seconds',
    help: 'Time from the job sent to the end of the program',
    labelNames: ['language'] as const,
    buckets: [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [this.#registry],
  });

  constructor(gauges: Gauges) {
    const registers = [this.#registry];
    new Gauge({
      name: 'hotcell_runs_running',
      help: 'Runs under way',
      registers,
      collect() {
        this.set(gauges.load().running);
      },
    });
    new Gauge({
      name: 'hotcell_runs_waiting',
      help: 'Runs that wait for their turn',
      registers,
      collect() {
        this.set(gauges.load().waiting);
      },
    });
    new Gauge({
      name: 'hotcell_cells_ready',
      help: 'Booted cells that wait for a job',
      labelNames: ['language'] as const,
      registers,
      collect() {
        for (const { language, cells } of gauges.ready()) this.set({ language }, cells);
      },
    });
    new Gauge({
      name: 'hotcell_resident_memory_bytes',
      help: 'Memory of the server itself',
      registers,
      collect() {
        this.set(process.memoryUsage.rss());
      },
    });
  }

  count(result: RunResult): void {
    const { language, outcome, limitHit, warm } = result;
    this.#runs.inc({ language, outcome: outcome.kind, limit: limitHit ?? 'none', warm: String(warm) });
    this.#seconds.observe({ language }, result.wallTimeMs / 1000);
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}
