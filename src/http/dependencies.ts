import type { Log } from '../core/log.ts';
import type { Runs } from '../runs/run.ts';
import type { HealthReply } from '../wire/execute.ts';

export interface HttpOptions {
  /** Without it everybody who reaches the port may run code. */
  readonly apiKey?: string | undefined;
  readonly corsOrigins: readonly string[];
  /** Host names, each with or without a port, that are served beside localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  readonly bodyLimitBytes: number;
  readonly version: string;
}

export interface HttpDependencies {
  readonly runs: Runs;
  health(): HealthReply;
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  readonly log: Log;
  readonly options: HttpOptions;
}
