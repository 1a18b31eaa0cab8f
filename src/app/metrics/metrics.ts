import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { RunResult } from '../../runs/run.ts';
import type { SessionStats } from '../../sessions/session-stats.ts';
import type { MetricsReply } from '../../wire/metrics.ts';
import { SESSION_METRICS, toSessionsView } from './session-metrics.ts';

export interface Gauges {
  load(): { running: number; waiting: number };
  ready(): readonly { language: string; cells: number }[];
  /** All zero where there are no sessions. */
  sessionStats(): SessionStats;
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
  readonly #gauges: Gauges;
  readonly #startedAt = Date.now();
  #runsTotal = 0;

  constructor(gauges: Gauges) {
    this.#gauges = gauges;
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
    for (const [name, of, help] of SESSION_METRICS) {
      const write = (metric: Gauge | Counter): void => {
        const figure = gauges.sessionStats()[of];
        metric.reset();
        if (typeof figure === 'number') metric.inc(figure);
        else for (const [reason, count] of Object.entries(figure)) metric.inc({ reason }, count);
      };
      if (name.endsWith('_total')) this.#counter(name, help, write);
      else this.#gauge(name, help, write);
    }
  }

  /** A gauge that is read when somebody asks, so that nothing is counted twice. */
  #gauge(name: string, help: string, read: (gauge: Gauge) => void): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: ['language', 'reason'],
      registers: [],
      collect: () => read(gauge),
    });
    this.#registry.registerMetric(gauge);
  }

  /** As a gauge, for what only grows. */
  #counter(name: string, help: string, read: (counter: Counter) => void): void {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames: ['reason'],
      registers: [],
      collect: () => read(counter),
    });
    this.#registry.registerMetric(counter);
  }

  count(result: RunResult): void {
    const { language, outcome, limitHit, warm } = result;
    this.#runsTotal += 1;
    this.#runs.inc({ language, outcome: outcome.kind, limit: limitHit ?? 'none', warm: String(warm) });
    this.#seconds.observe({ language }, result.wallTimeMs / 1000);
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }

  view(): MetricsReply {
    return {
      started_at: new Date(this.#startedAt).toISOString(),
      uptime_seconds: Math.floor((Date.now() - this.#startedAt) / 1000),
      memory_bytes: process.memoryUsage.rss(),
      runs: { ...this.#gauges.load(), total: this.#runsTotal },
      ...toSessionsView(this.#gauges.sessionStats()),
    };
  }
}
