import { request as sendRequest, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { HotcellError } from '../core/errors.ts';
import { Tenants, type TenantSettings } from '../policy/tenants.ts';
import type { LanguageStatus, RunRequest, RunResult, Runs } from '../runs/run.ts';
import type { HealthReply } from '../wire/execute.ts';
import type { McpHandler } from './dependencies.ts';
import { EXECUTE_REPLY_EXAMPLE, METRICS_VIEW_EXAMPLE } from './openapi-examples.ts';
import { buildHttpServer, type HttpOptions } from './server.ts';
import { ScriptedSessions } from './sessions/scripted-sessions.double.ts';

type Script = (request: RunRequest, signal: AbortSignal) => Promise<RunResult>;

export interface LogLine {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

interface ScriptedOptions extends Partial<Omit<HttpOptions, 'mcp'>> {
  readonly apiKey?: string;
  readonly tenants?: TenantSettings;
  readonly mcp?: McpHandler;
  /** Why this server has no sessions. */
  readonly sessionsProblem?: string;
}

export interface Ask {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON; throws if it is none. */
  json(): unknown;
}

/** Of no interest to the door, which only carries it. */
const { enforcement: ENFORCEMENT } = EXECUTE_REPLY_EXAMPLE.receipt.isolation;

export const PYTHON: LanguageStatus = {
  name: 'python',
  extension: 'py',
  imageName: 'python:3.10-slim',
  available: true,
  problem: undefined,
  state: 'running',
};

export const HEALTH: HealthReply = {
  status: 'degraded',
  containers: { python: 'running', ruby: 'stopped' },
  uptime_seconds: 12.5,
  driver: 'scripted',
  driver_reason: 'auto: the first choice here',
  runtime: 'none',
  strategy: 'fresh',
  walls: 'runtime',
  walls_problem: null,
  problem: null,
};

export function aRunResult(changes: Partial<RunResult> = {}): RunResult {
  return {
    outcome: { kind: 'exited', code: 0 },
    exitCode: 0,
    limitHit: undefined,
    stdout: { text: 'out\n', totalBytes: 4, truncated: false },
    stderr: { text: 'err\n', totalBytes: 4, truncated: false },
    wallTimeMs: 40,
    cpuTimeMs: 10,
    peakMemoryBytes: 10 * 1024 * 1024,
    cellId: 'code-runner-python-a3f9',
    language: 'python',
    imageName: 'python:3.10-slim',
    filePath: '/tmp/exec_1.py',
    isolation: { driver: 'scripted', runtime: 'none', enforcement: ENFORCEMENT },
    warm: true,
    packages: undefined,
    ...changes,
  };
}

/** The real door on a real port, in front of runs that do what a test tells them. */
export class ScriptedServer implements AsyncDisposable {
  readonly app: FastifyInstance;
  readonly runRequests: RunRequest[] = [];
  readonly logLines: LogLine[] = [];
  readonly sessions = new ScriptedSessions();
  languages: LanguageStatus[] = [PYTHON];
  health: HealthReply = HEALTH;
  script: Script = () => Promise.resolve(aRunResult());
  metrics = (): Promise<string> => Promise.resolve('hotcell_runs_total 1\n');

  static async start(options: ScriptedOptions = {}): Promise<ScriptedServer> {
    const server = new ScriptedServer(options);
    await server.app.listen({ host: '127.0.0.1', port: 0 });
    return server;
  }

  constructor({ apiKey, tenants = {}, mcp, sessionsProblem, ...options }: ScriptedOptions) {
    const runs: Runs = {
      run: (request, { signal }) => {
        this.runRequests.push(request);
        return this.script(request, signal);
      },
      languages: () => this.languages,
      requireLanguage: (name) => {
        if (this.languages.some((language) => language.name === name)) return;
        throw new HotcellError('LANGUAGE_UNKNOWN', `there is no language ${JSON.stringify(name)}`);
      },
    };
    const record = (level: string) => (fields: Record<string, unknown>, message: string) => {
      this.logLines.push({ level, fields, message });
    };
    this.app = buildHttpServer({
      runs,
      sessions: sessionsProblem === undefined ? this.sessions : undefined,
      sessionsProblem,
      mcp,
      tenants: new Tenants({ apiKey, tenants }),
      health: () => this.health,
      metrics: () => this.metrics(),
      metricsView: () => METRICS_VIEW_EXAMPLE,
      log: { debug: record('debug'), info: record('info'), warn: record('warn'), error: record('error') },
      options: {
        corsOrigins: ['http://localhost:3000'],
        allowedHosts: [],
        bodyLimitBytes: 100 * 1024,
        sessions: { bodyLimitBytes: 1024 * 1024 },
        mcp: { bodyLimitBytes: 1024 * 1024 },
        version: '9.8.7',
        ...options,
      },
    });
  }

  get port(): number {
    const address = this.app.server.address();
    if (address === null || typeof address === 'string')
      throw new RangeError('the server does not listen on TCP');
    return address.port;
  }

  /** Sends anything: unlike fetch it lets a test choose Host, Origin and method. */
  ask(path: string, { method = 'GET', headers = {}, body }: Ask = {}): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const outgoing = sendRequest({
        host: '127.0.0.1',
        port: this.port,
        path,
        method,
        headers,
        agent: false,
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => {
        const chunks: Uint8Array[] = [];
        response.on('data', (chunk: Uint8Array) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const { statusCode: status = 0, headers: received } = response;
          resolve({ status, headers: received, text, json: () => JSON.parse(text) as unknown });
        });
      });
      // As bytes, because node:http would write headers as UTF-8 together with a text.
      outgoing.end(body === undefined ? undefined : Buffer.from(body));
    });
  }

  execute(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.executeRaw(JSON.stringify(body), headers);
  }

  executeRaw(body: string | Uint8Array, headers: Record<string, string> = {}): Promise<Answer> {
    return this.ask('/execute/python', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    });
  }

  /** Writes bytes to a bare socket and returns all that comes back until the server closes it. */
  sendBytes(bytes: string | Uint8Array): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.port, '127.0.0.1', () => socket.write(bytes));
      let received = '';
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString();
      });
      // Whoever still sends may be cut off, but has seen the answer by then.
      socket.on('error', (error) => (received === '' ? reject(error) : resolve(received)));
      socket.on('close', () => resolve(received));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app.close();
  }
}
