import { toClientEvent, OutputPart, type ClientEvent } from './client-event.ts';
import { EventStreamParser, type ServerSentEvent } from './event-stream-parser.ts';
import type { HttpRequest, HttpTransport } from './http-transport.ts';
import { delayBefore, pause } from './retry-policy.ts';
import { badReply, cancelled, networkError, reasonOf, RunnerError } from './runner-error.ts';

/** An exit may carry the files that the command changed. */
const LONGEST_EVENT = 64 * 1024 * 1024;
/** How long a server may take to end its answer after the exit. */
const ENDING_MS = 500;

export interface Following {
  readonly transport: HttpTransport;
  /** Of the session, such as `/v1/sessions/session_1`. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** Begins the command; undefined to follow one that is there. It is sent once. */
  readonly begin?: HttpRequest;
  readonly execId?: string;
  readonly from?: number;
}

/** The output of one command, each byte once and in order, over as many connections as it takes. */
export class ExecFollower {
  readonly #following: Following;
  #execId: string | undefined;
  #position: number;
  #isStarted = false;
  #hasEnded = false;
  /** Connections in a row that brought nothing new. */
  #failures = 0;

  constructor(following: Following) {
    this.#following = following;
    this.#execId = following.execId;
    this.#position = following.from ?? 0;
  }

  /** Known as soon as the command has begun. */
  get execId(): string | undefined {
    return this.#execId;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async *events(): AsyncGenerator<ClientEvent> {
    const { transport, signal } = this.#following;
    while (!this.#hasEnded) {
      const parser = new EventStreamParser(LONGEST_EVENT);
      try {
        yield* this.#oneConnection(parser);
        throw networkError('the stream ended before the command did');
      } catch (error) {
        if (this.#hasEnded) return;
        if (signal.aborted) throw cancelled(signal);
        const problem =
          error instanceof RunnerError
            ? error
            : networkError(`the connection broke: ${reasonOf(error)}`, error);
        if (!this.#mayConnectAgain(problem)) throw problem;
        const delayMs = Math.max(
          delayBefore(this.#failures, transport.retries),
          Math.min(parser.retryMs ?? 0, transport.retries.longestDelayMs),
          Math.min(problem.retryAfterSeconds ?? 0, 30) * 1000,
        );
        this.#failures += 1;
        transport.tell({ error: problem, delayMs });
        await pause(delayMs, signal);
      }
    }
  }

  #mayConnectAgain({ code, status }: RunnerError): boolean {
    // A command that was never heard of is not sent again: it may run.
    if (this.#execId === undefined) return false;
    const isPassing = code === 'NETWORK' || status === 429 || (status >= 502 && status <= 504);
    return isPassing && this.#failures < this.#following.transport.retries.reconnects;
  }

  async *#oneConnection(parser: EventStreamParser): AsyncGenerator<ClientEvent> {
    const { transport, signal } = this.#following;
    const connection = new AbortController();
    const both = AbortSignal.any([signal, connection.signal]);
    try {
      const response = await this.#open(both);
      const { silenceMs } = transport.retries;
      const openedAt = Date.now();
      for await (const bytes of chunksOf(response, () => (this.#hasEnded ? ENDING_MS : silenceMs))) {
        // Nothing comes after the exit; a stream that is read to its end leaves its connection for the next request.
        if (this.#hasEnded) continue;
        // Some proxies cut every connection now and then, also that of a command with nothing to say.
        if (Date.now() - openedAt > transport.retries.longestDelayMs) this.#failures = 0;
        for (const event of parser.push(bytes)) {
          const seen = this.#see(event);
          if (seen !== undefined) yield seen;
          if (this.#hasEnded) break;
        }
      }
    } finally {
      connection.abort();
    }
  }

  async #open(signal: AbortSignal): Promise<Response> {
    const { transport, path, begin } = this.#following;
    const accept = { accept: 'text/event-stream' };
    const isNew = this.#execId === undefined && begin !== undefined;
    const request: HttpRequest = isNew
      ? { ...begin, headers: accept, signal }
      : {
          method: 'GET',
          path: `${path}/execs/${this.#execId ?? ''}/output`,
          headers: { ...accept, 'last-event-id': String(this.#position) },
          signal,
          // Whoever follows counts the attempts himself.
          once: true,
        };
    const response = await transport.send(request, (answer) => Promise.resolve(answer));
    this.#execId ??= response.headers.get('x-hotcell-exec-id') ?? undefined;
    if (!/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) {
      throw badReply('it is no stream of events');
    }
    return response;
  }

  /** What of the event is new. */
  #see(event: ServerSentEvent): ClientEvent | undefined {
    const seen = toClientEvent(event);
    switch (seen?.type) {
      case undefined:
        return undefined;
      case 'start':
        return this.#start(seen);
      case 'interrupted':
        throw networkError(`the stream was interrupted: ${seen.detail}`);
      case 'exit':
        this.#hasEnded = true;
        return seen;
      case 'cut': {
        const from = Math.max(seen.from, this.#position);
        if (seen.to <= from) return undefined;
        this.#moveTo(seen.to);
        return { ...seen, from };
      }
      case 'stdout':
      case 'stderr':
        return this.#take(seen);
      default:
        return seen satisfies never;
    }
  }

  #start(event: Extract<ClientEvent, { type: 'start' }>): ClientEvent | undefined {
    this.#execId ??= event.execId;
    if (event.execId !== this.#execId) throw badReply('it is the output of another command');
    if (this.#isStarted) return undefined;
    this.#isStarted = true;
    return event;
  }

  #take(part: OutputPart): ClientEvent | undefined {
    const end = part.from + part.bytes.length;
    if (part.from > this.#position) throw badReply('a part of the output is missing');
    if (end <= this.#position) return undefined;
    const bytes = part.bytes.subarray(this.#position - part.from);
    const fresh = new OutputPart(part.type, this.#position, bytes);
    this.#moveTo(end);
    return fresh;
  }

  #moveTo(position: number): void {
    this.#position = position;
    this.#failures = 0;
  }
}

/** The body as it comes. Throws when nothing came for so long, because some connections die without a word. */
async function* chunksOf({ body }: Response, silence: () => number): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (;;) {
      const tooLong = Promise.withResolvers<never>();
      const limitMs = silence();
      const timer = setTimeout(
        () => tooLong.reject(networkError(`nothing came for ${limitMs} ms, not even a sign of life`)),
        limitMs,
      );
      const { done, value } = await Promise.race([reader.read(), tooLong.promise]).finally(() =>
        clearTimeout(timer),
      );
      if (done) return;
      yield value;
    }
  } finally {
    // Whatever is still under way is of no interest any more.
    await reader.cancel().catch(() => undefined);
  }
}
