import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../core/log.ts';
import type { Tenants } from '../policy/tenants.ts';
import type { Runs } from '../runs/run.ts';
import type { Sessions } from '../sessions/api.ts';
import type { HealthReply } from '../wire/execute.ts';
import type { MetricsReply } from '../wire/metrics.ts';

export interface HttpOptions {
  readonly corsOrigins: readonly string[];
  /** Host names, each with or without a port, that are served beside localhost and IP addresses. */
  readonly allowedHosts: readonly string[];
  readonly bodyLimitBytes: number;
  readonly sessions: {
    /** Of routes that carry files or input into a session. */
    readonly bodyLimitBytes: number;
  };
  readonly mcp: {
    /** Of `/mcp`, which carries code and files. */
    readonly bodyLimitBytes: number;
  };
  /** How often a stream without news shows that it is alive, and a terminal is asked whether its viewer is. */
  readonly heartbeatMs?: number;
  readonly version: string;
}

/** A door of its own behind ours: ours has checked who asks, and read the body. */
export interface McpHandler {
  /** Writes the whole answer. Never rejects. */
  answer(admitted: {
    readonly request: IncomingMessage;
    readonly response: ServerResponse;
    readonly body: unknown;
    readonly owner: { readonly tenant: string };
  }): Promise<void>;
}

export interface HttpDependencies {
  readonly runs: Runs;
  /** Undefined where there are none; then `sessionsProblem` says why. */
  readonly sessions: Sessions | undefined;
  readonly sessionsProblem?: string | undefined;
  /** Undefined where MCP is not served; then `mcpProblem` says why. */
  readonly mcp?: McpHandler | undefined;
  readonly mcpProblem?: string | undefined;
  /** Whose request it is; throws UNAUTHORIZED. */
  readonly tenants: Pick<Tenants, 'authenticate' | 'required'>;
  health(): HealthReply;
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  metricsView(): MetricsReply;
  readonly log: Log;
  readonly options: HttpOptions;
}
