import { request as sendRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';

export interface ReceivedEvent {
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
}

/** Parses server-sent events as the HTML standard says, byte by byte as they come. For tests. */
export class EventParser {
  readonly events: ReceivedEvent[] = [];
  readonly comments: string[] = [];
  lastEventId = '';
  retryMs: number | undefined;
  // As the standard has it: one BOM at the very beginning is not part of the stream.
  readonly #decoder = new TextDecoder('utf-8');
  #rest = '';
  #type = '';
  #data = '';
  #id = '';

  push(bytes: Uint8Array): void {
    this.#rest += this.#decoder.decode(bytes, { stream: true });
    for (;;) {
      const end = /\r\n|\n|\r(?!$)/.exec(this.#rest);
      if (end === null) return;
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      this.#take(line);
    }
  }

  #take(line: string): void {
    if (line === '') this.#dispatch();
    else if (line.startsWith(':')) this.comments.push(line.slice(1));
    else {
      const colon = line.indexOf(':');
      const name = colon === -1 ? line : line.slice(0, colon);
      this.#field(name, colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, ''));
    }
  }

  #field(name: string, value: string): void {
    if (name === 'event') this.#type = value;
    else if (name === 'data') this.#data += `${value}\n`;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.retryMs = Number(value);
  }

  #dispatch(): void {
    this.lastEventId = this.#id;
    if (this.#data !== '') {
      const data = this.#data.slice(0, -1);
      this.events.push({ type: this.#type || 'message', data, lastEventId: this.#id });
    }
    this.#data = '';
    this.#type = '';
  }
}

interface Opening {
  readonly port: number;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** A real connection that reads events. */
export class EventConnection implements Disposable {
  readonly parser = new EventParser();
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Resolves when the server has ended the stream; rejects when it was cut. */
  readonly ended: Promise<void>;
  readonly response: IncomingMessage;
  /** All that came, for a reply that is no stream of events. */
  text = '';

  static open({ port, path, method = 'GET', headers = {}, body }: Opening): Promise<EventConnection> {
    return new Promise((resolve, reject) => {
      const outgoing = sendRequest({
        host: '127.0.0.1',
        port,
        path,
        method,
        headers: { accept: 'text/event-stream', ...headers },
        agent: false,
      });
      outgoing.on('error', reject);
      outgoing.on('response', (response) => resolve(new EventConnection(response)));
      outgoing.end(body);
    });
  }

  constructor(response: IncomingMessage) {
    this.response = response;
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ended = promise;
    // A test may not be interested in how the stream ends.
    this.ended.catch(() => undefined);
    response.on('data', (chunk: Buffer) => {
      this.text += chunk.toString();
      this.parser.push(chunk);
    });
    response.on('end', resolve);
    response.on('error', reject);
  }

  get events(): readonly ReceivedEvent[] {
    return this.parser.events;
  }

  [Symbol.dispose](): void {
    this.response.destroy();
  }
}
