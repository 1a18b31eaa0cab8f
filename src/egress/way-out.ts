import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { messageOf } from '../core/errors.ts';
import type { Exec } from '../core/exec.ts';
import type { Log } from '../core/log.ts';
import { Semaphore } from '../lib/semaphore.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import { AllowList } from './allow-list.ts';
import type { Allowed } from './cell-network.ts';
import type { Dialer } from './dialer.ts';
import { forward } from './forward.ts';
import type { InjectedHeaders } from './header-injection.ts';
import { HTTP_PORT, TLS_PORT, parseAuthority, type Destination, type Refused } from './host-name.ts';
import { describeAllowed } from './http-rule.ts';
import { Passages, type Asked } from './passages.ts';
import { planRequest } from './plain-request.ts';
import type { PresetTable } from './presets.ts';
import type { ProxyKey } from './proxy-key.ts';
import { RefusalLog } from './refusal-log.ts';
import { NOT_FOR_YOU, encodeReply, toFailureReply, toRefusalReply, type GateReply } from './refusal-reply.ts';
import { Relay } from './relay.ts';
import { toNameable, type SeenRequest } from './seen-request.ts';
import type { TlsClient } from './tls-client.ts';
import { UNRECOGNIZED_NAME, readGreeting, splice } from './tunnel.ts';

export interface WayOutParts {
  readonly dialer: Dialer;
  readonly tls: TlsClient;
  readonly presets: PresetTable;
  readonly log: Log;
  /** What every request must show, where others than programs of the cell can connect, too. */
  readonly key: ProxyKey | undefined;
  readonly howToAllow: string;
  readonly injected: InjectedHeaders;
  onClose(wayOut: WayOut): void;
}

export interface EgressReport {
  /** As asked for. */
  readonly allow: readonly string[];
  /** What the presets stand for here. */
  readonly hosts: readonly string[];
  /** Connections that were let through. */
  readonly allowedCount: number;
  readonly refusedCount: number;
  /** The latest ones. */
  readonly refusals: readonly EgressRefusal[];
}

const REQUEST_MS = 30_000;
/** For the answer to arrive. */
const LINGER_MS = 2000;
const LOOKUPS_AT_ONCE = 8;
const NOT_HTTP: Refused = { code: 'malformed', reason: 'not a request of HTTP' };
const NO_ECHO: Refused = { code: 'malformed', reason: 'TRACE would show what the gate adds' };

/** The way out of one cell: a proxy that only its own cell can speak to, or only who knows its key. */
export class WayOut {
  readonly #parts: WayOutParts;
  readonly #server: Server;
  readonly #refusals: RefusalLog;
  readonly #passages = new Passages();
  readonly #relays = new Map<Relay, Promise<void>>();
  readonly #lookups = new Semaphore(LOOKUPS_AT_ONCE);
  /** Connections that have asked for something: each may only once. */
  readonly #used = new WeakSet<Duplex>();
  /** Tunnels that end here, because headers are added to what is asked in them, and where they were to lead. */
  readonly #inner = new WeakMap<Duplex, Destination>();
  #allow: readonly Allowed[];
  #list: AllowList;
  #allowedCount = 0;
  #isClosed = false;

  constructor(allow: readonly Allowed[], parts: WayOutParts) {
    this.#parts = parts;
    this.#refusals = new RefusalLog(parts.log);
    this.#allow = [...allow];
    this.#list = new AllowList(allow, parts.presets);
    this.#server = this.#makeServer();
  }

  /** Holds for new connections at once, and ends those for which there is no permission any more. */
  setAllow(allow: readonly Allowed[]): void {
    this.#allow = [...allow];
    this.#list = new AllowList(allow, this.#parts.presets);
    for (const passage of this.#passages.all()) {
      const { to, request } = passage.asked;
      const refused = this.#list.check(passage.asked);
      if (refused === undefined) continue;
      this.#note({ ...refused, reason: 'no longer on the allow-list of this session' }, to, request);
      passage.end();
    }
  }

  describe(): EgressReport {
    return {
      allow: this.#allow.map(describeAllowed),
      hosts: [...this.#list.hosts],
      allowedCount: this.#allowedCount,
      refusedCount: this.#refusals.count,
      refusals: this.#refusals.latest,
    };
  }

  /** Everything that can be reached, with the presets spelled out. */
  reachable(): string[] {
    return [...this.#list.reachable];
  }

  /** For `refusalsSince`: what is refused from now on. */
  mark(): number {
    return this.#refusals.count;
  }

  refusalsSince(mark: number): EgressRefusal[] {
    return this.#refusals.since(mark);
  }

  /** Serves the cell in which `exec`, started with `RELAY`, runs; resolves when that has ended or the way out is closed. */
  async serve(exec: Exec, onReady: () => void = () => {}): Promise<void> {
    if (this.#isClosed) {
      exec.closeStdin();
      return;
    }
    const accept = (connection: Duplex): void => this.accept(connection);
    const relay = new Relay({ exec, log: this.#parts.log, onReady, accept });
    const running = relay.run();
    this.#relays.set(relay, running);
    await running;
    this.#relays.delete(relay);
  }

  /** A connection of a program that takes us for a proxy. */
  accept(connection: Duplex): void {
    if (this.#isClosed) {
      connection.destroy();
      return;
    }
    const timer = setTimeout(() => {
      if (!this.#used.has(connection)) connection.destroy();
    }, REQUEST_MS);
    connection.once('close', () => clearTimeout(timer));
    connection.on('error', () => {});
    this.#server.emit('connection', connection);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const passage of this.#passages.all()) passage.end();
    for (const relay of this.#relays.keys()) relay.close();
    this.#parts.onClose(this);
  }

  /** Resolves when no cell is served any more. */
  async done(): Promise<void> {
    await Promise.all(this.#relays.values());
  }

  #makeServer(): Server {
    const server = createServer({ requireHostHeader: false });
    // SECURITY: one request a connection, so that there is no second one that nobody looks at.
    server.maxRequestsPerSocket = 1;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.#guarded(request.socket, () => this.#answer(request, response));
    });
    server.on('connect', (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.#guarded(client, () => this.#tunnel(request, client, head));
    });
    server.on('clientError', (_error: Error, client: Duplex) => {
      if (this.#used.has(client)) client.destroy();
      // It comes once more with every further piece of the same nonsense.
      else if (client.writable) finish(client, encodeReply(this.#refuseNonsense()));
    });
    return server;
  }

  /** SECURITY: whatever a program makes us stumble over must end its own connection and nothing else. */
  #guarded(client: Duplex, serve: () => Promise<void>): void {
    if (this.#used.has(client)) {
      client.destroy();
      return;
    }
    this.#used.add(client);
    serve().catch((error: unknown) => {
      this.#parts.log.warn({ reason: messageOf(error) }, 'egress connection failed');
      client.destroy();
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!this.#isKnown(request)) return reply(response, NOT_FOR_YOU);
    const { injected } = this.#parts;
    const planned = planRequest(this.#toAsked(request), injected);
    if ('refused' in planned) return reply(response, this.#refuse(planned.refused, planned.asked));
    const { plan } = planned;
    const isTls = plan.request.scheme === 'https';
    if (plan.request.method === 'TRACE' && isTls && injected.has(plan.to)) {
      return reply(response, this.#refuse(NO_ECHO, plan.to, plan.request));
    }
    const way = await this.#open({ ...plan, client: request.socket });
    if ('status' in way) return reply(response, way);
    const end = isTls ? await this.#parts.tls.secure(way, plan.to.host) : { socket: way };
    if ('failed' in end) return reply(response, toFailureReply(plan.to, end.failed));
    this.#allowedCount++;
    // SECURITY: only here, where the other end has shown the certificate of the host.
    const headers = isTls ? injected.addTo(plan.headers, plan.to) : plan.headers;
    forward(plan, { request, response, server: end.socket, headers });
  }

  async #tunnel(request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    if (this.#inner.has(client)) return finish(client, encodeReply(this.#refuse(NOT_HTTP)));
    if (!this.#isKnown(request)) return finish(client, encodeReply(NOT_FOR_YOU));
    const parsed = parseAuthority(request.url ?? '', TLS_PORT);
    if ('refused' in parsed) return finish(client, encodeReply(this.#refuse(parsed.refused, parsed.asked)));
    if (this.#endsHere(parsed.to)) return this.#endHere(client, head, parsed.to);
    const way = await this.#open({ to: parsed.to, usualPort: TLS_PORT, request: undefined, client });
    if ('status' in way) return finish(client, encodeReply(way));
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    const greeting = await readGreeting(client, head, parsed.to.host);
    if (greeting === undefined) {
      way.destroy();
      client.destroy();
    } else if (greeting.refused !== undefined) {
      way.destroy();
      this.#note(greeting.refused, parsed.to);
      finish(client, UNRECOGNIZED_NAME);
    } else {
      this.#allowedCount++;
      splice(client, way, greeting.bytes);
    }
  }

  /** At other ports than the one of plain HTTP it may well be TLS that is spoken in the tunnel. */
  #endsHere(to: Destination): boolean {
    return to.port === HTTP_PORT && this.#parts.injected.secured(to) !== undefined;
  }

  /**
   * Some programs, Node's fetch among them, ask for a tunnel where they could send a plain request. What comes in it is
   * taken for just that, and checked like any other.
   */
  #endHere(client: Duplex, head: Buffer, to: Destination): void {
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) client.unshift(head);
    this.#inner.set(client, to);
    this.#used.delete(client);
    this.#server.emit('connection', client);
  }

  /** In a tunnel the host is in nothing but the header, which has to be the one of the tunnel. */
  #toAsked(request: IncomingMessage): Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'> {
    const to = this.#inner.get(request.socket);
    const { method, url = '', rawHeaders } = request;
    if (to === undefined || !url.startsWith('/')) return request;
    return { method: method ?? '', url: `http://${to.host}${url}`, rawHeaders };
  }

  /** The way to a destination, or what to say instead. SECURITY: every connection to the outside is made here. */
  async #open(asked: Asked): Promise<Socket | GateReply> {
    const { to, request } = asked;
    const refused = this.#list.check(asked);
    if (refused !== undefined) return this.#refuse(refused, to, request);
    const passage = this.#passages.open(asked);
    const dialled = await this.#parts.dialer.dial(to, this.#lookups);
    if ('socket' in dialled && passage.attach(dialled.socket)) return dialled.socket;
    this.#passages.forget(passage);
    if ('refused' in dialled) return this.#refuse(dialled.refused, to, request);
    return toFailureReply(to, 'failed' in dialled ? dialled.failed : 'nobody waits for it any more');
  }

  /** SECURITY: asked of every request, before anything else is looked at. */
  #isKnown(request: IncomingMessage): boolean {
    return this.#inner.has(request.socket) || (this.#parts.key?.opens(request) ?? true);
  }

  /** Where anybody can connect, nonsense is not held against the cell. */
  #refuseNonsense(): GateReply {
    if (this.#parts.key === undefined) return this.#refuse(NOT_HTTP);
    return toRefusalReply(undefined, NOT_HTTP, this.#parts.howToAllow);
  }

  #refuse(refused: Refused, to?: Destination, request?: SeenRequest): GateReply {
    this.#note(refused, to ?? { host: '', port: 0 }, request);
    return toRefusalReply(to, refused, this.#parts.howToAllow);
  }

  #note({ code, reason }: Refused, { host, port }: Destination, request?: SeenRequest): void {
    const facts = request === undefined ? {} : toNameable(request);
    this.#refusals.add({ host, port, code, reason, ...facts });
  }
}

function reply(response: ServerResponse, { status, headers, body }: GateReply): void {
  response.writeHead(status, headers).end(body);
}

/** For a connection that no HTTP server looks after any more. */
function finish(client: Duplex, answer: string | Uint8Array): void {
  client.end(answer);
  // What else the program says does not matter, but has to be read for its end to be seen.
  client.resume();
  // SECURITY: who never ends would hold the connection, of which there is a bounded number.
  const timer = setTimeout(() => client.destroy(), LINGER_MS);
  client.once('close', () => clearTimeout(timer));
}
