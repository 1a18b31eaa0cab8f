import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findEndpoint, type Endpoint } from './endpoint.ts';
import { Engine } from './engine.ts';

/** `hang`: no answer at all; `hang up`: the connection is closed instead. */
export type ScriptedAnswer = { readonly status?: number; readonly body?: unknown } | 'hang' | 'hang up';

/** For tests: what an engine answers to a request such as `GET /info`; the body has one letter for each byte. */
export type EngineScript = (request: string, body: string) => ScriptedAnswer;

/** For tests: an HTTP server on a socket that answers as a test wants engines to. */
export class ScriptedEngine implements AsyncDisposable {
  readonly endpoint: Endpoint;
  /** Every request so far, such as `DELETE /containers/x?force=true`. */
  readonly asked: string[] = [];
  script: EngineScript;
  readonly #folder: string;
  #server: Server | undefined;

  constructor(script: EngineScript) {
    this.script = script;
    this.#folder = mkdtempSync(join(tmpdir(), 'hotcell-engine-'));
    this.endpoint = findEndpoint({ host: `unix://${join(this.#folder, 'engine.sock')}` });
  }

  static async start(script: EngineScript): Promise<ScriptedEngine> {
    const engine = new ScriptedEngine(script);
    await engine.listen();
    return engine;
  }

  /** Answers from now on. */
  async listen(): Promise<void> {
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.#server.listen(this.endpoint.connection.socketPath);
    await once(this.#server, 'listening');
  }

  /** As an engine that was stopped: the socket is gone, and all connections with it. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  connect(): Promise<Engine> {
    return Engine.connect(this.endpoint);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    request.on('data', (bytes: Buffer) => chunks.push(bytes));
    await once(request, 'end');
    const body = Buffer.concat(chunks).toString('latin1');
    const line = `${request.method} ${request.url}`;
    this.asked.push(line);
    const answer = this.script(line, body);
    if (answer === 'hang') return;
    if (answer === 'hang up') {
      response.destroy();
      return;
    }
    const { status = 200 } = answer;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? null));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
