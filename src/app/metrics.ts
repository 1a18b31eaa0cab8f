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
    this.#gauge('hotcell_runs_running', 'Runs under way', (gauge) => gauge.set(gauges.load().running));
    this.#gauge('hotcell_runs_waiting', 'Runs that wait for their turn', (gauge) =>
      gauge.set(gauges.load().waiting),
    );
    this.#gauge('hotcell_resident_memory_bytes', 'Memory of the server itself', (gauge) =>
      gauge.set(process.memoryUsage.rss()),
    );
    this.#gauge('hotcell_cells_ready', 'Booted cells that wait for a job', (gauge) => {
      for (const { language, cells } of gauges.ready()) gauge.set({ language }, cells);
    });
  }

  /** A gauge that is read when somebody asks, so that nothing is counted twice. */
  #gauge(name: string, help: string, read: (gauge: Gauge<'language'>) => void): void {
    const gauge: Gauge<'language'> = new Gauge({
      name,
      help,
      labelNames: ['language'],
      registers: [],
      collect: () => read(gauge),
    });
    this.#registry.registerMetric(gauge);
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
