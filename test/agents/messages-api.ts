import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import { Authority } from '../support/certificates.ts';
import { answer, sendError } from './message-stream.ts';
import { conversationOf, folderOf, headerOf, promptOf, sessionOf } from './seen-request.ts';
import type { RequestBody, SeenRequest } from './seen-request.ts';
import type { Turn } from './turns.ts';

interface Conversation {
  /** One list of turns for each start of the agent. */
  readonly attempts: readonly (readonly Turn[])[];
  /** The last list is that of all later starts, too. */
  readonly repeats: boolean;
  /** Those that were seen, in order. */
  readonly sessions: string[];
  /** How many turns of the list of each session are used up. */
  readonly used: Map<string, number>;
}

/** Answers without which the agent does not begin, and which say nothing. */
const COURTESIES: ReadonlySet<string> = new Set(['HEAD /api/hello']);

/**
 * A Messages API for the real agent, by script: for each conversation the test says what is answered, turn by turn. What
 * nobody has scripted is refused, and `problems` tells of it.
 */
export class MessagesApi implements AsyncDisposable {
  readonly requests: SeenRequest[] = [];
  /** What was asked that no test has an answer for. */
  readonly problems: string[] = [];
  readonly #server: Server;
  readonly #name: string;
  readonly #folder: string | undefined;
  readonly #conversations = new Map<string, Conversation>();
  #answers = 0;

  private constructor(authority: { folder: string; name: string } | undefined) {
    this.#name = authority?.name ?? '127.0.0.1';
    this.#folder = authority?.folder;
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      this.#serve(request, response).catch((error: unknown) => {
        this.problems.push(`the API itself failed: ${messageOf(error)}`);
        response.destroy();
      });
    };
    if (authority === undefined) {
      this.#server = createServer(serve);
      return;
    }
    const { cert, key } = new Authority(authority.folder, 'authority').issue('api', [`DNS:${this.#name}`]);
    this.#server = createTlsServer({ cert: readFileSync(cert), key: readFileSync(key) }, serve);
  }

  /** For agents that are processes of this machine. */
  static async onLoopback(): Promise<MessagesApi> {
    return new MessagesApi(undefined).#listen('127.0.0.1');
  }

  /** For agents in cells: over TLS, under the name of this machine, which the gate can be asked for. */
  static async forCells(): Promise<MessagesApi> {
    const folder = mkdtempSync(join(tmpdir(), 'hotcell-messages-api-'));
    // Whoever runs the fleet may be somebody else, and has to read who signed.
    chmodSync(folder, 0o755);
    return new MessagesApi({ folder, name: hostname().toLowerCase() }).#listen('0.0.0.0');
  }

  async #listen(address: string): Promise<this> {
    this.#server.listen(0, address);
    await once(this.#server, 'listening');
    return this;
  }

  /** With the port, as configurations name it. */
  get host(): string {
    return `${this.#name}:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `${this.#folder === undefined ? 'http' : 'https'}://${this.host}`;
  }

  /** Who signed its certificate. */
  get caFile(): string | undefined {
    return this.#folder === undefined ? undefined : join(this.#folder, 'authority/ca.pem');
  }

  /** What is answered about this task, or in `plan` or `design`: a list of turns for each time that the agent is started. */
  script(conversation: string, ...attempts: readonly (readonly Turn[])[]): this {
    return this.#put(conversation, attempts, false);
  }

  /** The same, each time that the agent is started. */
  scriptAlways(conversation: string, turns: readonly Turn[]): this {
    return this.#put(conversation, [turns], true);
  }

  #put(conversation: string, attempts: readonly (readonly Turn[])[], repeats: boolean): this {
    this.#conversations.set(conversation, { attempts, repeats, sessions: [], used: new Map() });
    return this;
  }

  of(conversation: string): SeenRequest[] {
    return this.requests.filter((request) => request.conversation === conversation);
  }

  /** What the agent was asked by us, once for each time that it was started. */
  promptsOf(conversation: string): string[] {
    const prompts = new Map(this.of(conversation).map(({ attempt, prompt }) => [attempt, prompt]));
    return [...prompts.values()];
  }

  /** Turns that nobody has asked for, by conversation and attempt; what lasts may be asked for any number of times. */
  unasked(): string[] {
    return [...this.#conversations].flatMap(([name, { attempts, sessions, used }]) =>
      attempts.flatMap((turns, index) => {
        const left = turns.slice(used.get(sessions[index] ?? '') ?? 0).filter(({ lasts }) => lasts !== true);
        return left.length === 0 ? [] : [`${name}, attempt ${index + 1}: ${left.length} turns`];
      }),
    );
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += String(chunk);
    const path = (request.url ?? '').replace(/\?.*/s, '');
    const what = `${request.method} ${path}`;
    if (COURTESIES.has(what)) {
      response.writeHead(200).end();
    } else if (what === 'POST /v1/messages') {
      await this.#serveMessage(request, response, text);
    } else this.#refuse(response, 404, what);
  }

  async #serveMessage(request: IncomingMessage, response: ServerResponse, text: string): Promise<void> {
    const body = JSON.parse(text) as RequestBody;
    const prompt = promptOf(body);
    const name = conversationOf(prompt);
    const conversation = name === undefined ? undefined : this.#conversations.get(name);
    const session = sessionOf(body);
    if (conversation?.sessions.includes(session) === false) conversation.sessions.push(session);
    const attempt = (conversation?.sessions.indexOf(session) ?? 0) + 1;
    this.requests.push({
      conversation: name,
      attempt,
      authorization: headerOf(request, 'authorization'),
      apiKey: headerOf(request, 'x-api-key'),
      model: body.model,
      messages: body.messages.length,
      prompt,
      text,
      body,
    });
    if (conversation === undefined) {
      this.#refuse(response, 400, `${name ?? 'a conversation of nobody'}: ${prompt.slice(0, 300)}`);
      return;
    }
    const turns = turnsOf(conversation, attempt);
    const used = conversation.used.get(session) ?? 0;
    const turn = turns?.[used];
    if (turn === undefined) {
      const why =
        turns === undefined ? 'the agent was not to be started again' : `after its ${turns.length} turns`;
      const last = JSON.stringify(body.messages.findLast(({ role }) => role === 'user')).slice(0, 500);
      this.#refuse(response, 400, `${name}, attempt ${attempt}, ${why}: ${last}`);
      return;
    }
    if (turn.lasts !== true) conversation.used.set(session, used + 1);
    await answer(response, turn, { body, text, folder: folderOf(text), number: ++this.#answers });
  }

  #refuse(response: ServerResponse, status: number, what: string): void {
    this.problems.push(`nobody has scripted ${what}`);
    sendError(response, { type: 'invalid_request_error', message: 'nobody has scripted this' }, { status });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true });
  }
}

function turnsOf({ attempts, repeats }: Conversation, attempt: number): readonly Turn[] | undefined {
  return attempts[attempt - 1] ?? (repeats ? attempts.at(-1) : undefined);
}
