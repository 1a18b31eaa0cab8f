import * as z from 'zod';
import type { TerminalSize } from '../core/exec.ts';
import { EventQueue } from '../lib/event-queue.ts';
import { ExecResult } from '../wire/session-exec.ts';
import { delayBefore, pause, type RetryPolicy } from './retry-policy.ts';
import { badReply, networkError, RunnerError } from './runner-error.ts';
import type { RetryNotice } from './http-transport.ts';

export interface Attach {
  /** The terminal with this id, instead of a new one. */
  readonly execId?: string | undefined;
  /** First byte to see; the latest part unless given. */
  readonly from?: number | undefined;
}

/** Where to connect to. */
export interface TerminalTarget {
  /** Makes a connection: to the terminal with this id from this byte on, or to a new one. */
  connect(size: TerminalSize, attach: Attach): WebSocket;
  /** A WebSocket does not say why it was refused; a plain request does. Throws that reason, if there is one. */
  explain(execId: string | undefined): Promise<void>;
  readonly retries: RetryPolicy;
  tell(notice: RetryNotice): void;
}

const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), exec_id: z.string().min(1), from: z.int().min(0) }),
  z.object({ type: z.literal('cut'), from: z.int().min(0), to: z.int().min(0) }),
  z.object({ type: z.literal('exit'), result: ExecResult }),
  z.object({ type: z.literal('interrupted'), detail: z.string() }),
]);

/** Close code of a server that could not do what we asked for. */
const REFUSED = 1008;
/** Parts of output that may wait for a slow reader; more stays at the server. */
const MOST_PARTS_WAITING = 256;
const LARGEST_MESSAGE = 64 * 1024;
/** What is typed while there is no connection; more is lost, as in any terminal. */
const MOST_KEYS_WAITING = 64 * 1024;

const utf8 = new TextEncoder();

/**
 * A terminal in a session: an async iterable of what it shows. It outlives this connection, and this connection is made
 * again by itself when it breaks; nothing that the terminal shows is lost or shown twice.
 */
export class TerminalConnection implements AsyncIterable<Uint8Array> {
  readonly #target: TerminalTarget;
  readonly #shown = new EventQueue<Uint8Array>(MOST_PARTS_WAITING);
  readonly #exit = Promise.withResolvers<ExecResult | undefined>();
  readonly #leaving = new AbortController();
  readonly #opened = Promise.withResolvers<void>();
  #size: TerminalSize;
  #socket: WebSocket | undefined;
  #isReady = false;
  #execId: string | undefined;
  #position: number | undefined;
  #lostBytes = 0;
  #failures = 0;
  #connectedAt = 0;
  #isResting = false;
  #keys: Uint8Array<ArrayBuffer>[] = [];

  private constructor(target: TerminalTarget, size: TerminalSize, attach: Attach) {
    this.#target = target;
    this.#size = size;
    this.#execId = attach.execId;
    this.#position = attach.from;
    // Whoever is interested in the end asks for it.
    this.#exit.promise.catch(() => undefined);
    this.#shown.onFull = () => this.#rest();
    this.#shown.onDrained = () => this.#goOn();
  }

  /** Resolves when the terminal is there. */
  static async open(
    target: TerminalTarget,
    size: TerminalSize,
    attach: Attach = {},
  ): Promise<TerminalConnection> {
    const terminal = new TerminalConnection(target, size, attach);
    terminal.#connect();
    await terminal.#opened.promise;
    return terminal;
  }

  /** For attaching again later. */
  get execId(): string {
    return this.#execId ?? '';
  }

  /** Bytes that the server no longer had when we asked for them. */
  get lostBytes(): number {
    return this.#lostBytes;
  }

  /** How the command in the terminal ended; undefined when this connection was closed before. */
  get exit(): Promise<ExecResult | undefined> {
    return this.#exit.promise;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#shown[Symbol.asyncIterator]();
  }

  /** What somebody types. */
  write(data: string | Uint8Array): void {
    const bytes = typeof data === 'string' ? utf8.encode(data) : data;
    for (let at = 0; at < bytes.length; at += LARGEST_MESSAGE) {
      const part = new Uint8Array(bytes.subarray(at, at + LARGEST_MESSAGE));
      if (this.#isReady) this.#socket?.send(part);
      else if (this.#keys.reduce((sum, { length }) => sum + length, part.length) <= MOST_KEYS_WAITING) {
        this.#keys.push(part);
      }
    }
  }

  resize(size: TerminalSize): void {
    this.#size = size;
    this.#say({ type: 'resize', rows: size.rows, cols: size.columns });
  }

  /** Ends the command in the terminal. */
  kill(): void {
    this.#say({ type: 'kill' });
  }

  /** Leaves the terminal, which goes on; `exit` resolves with undefined. */
  close(): void {
    this.#finish(undefined);
  }

  #say(message: object): void {
    if (this.#isReady) this.#socket?.send(JSON.stringify(message));
  }

  #connect(): void {
    const socket = this.#target.connect(this.#size, { execId: this.#execId, from: this.#position });
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#connectedAt = Date.now();
    const isOurs = (): boolean => socket === this.#socket;
    socket.addEventListener('message', ({ data }: MessageEvent<unknown>) => {
      if (isOurs()) this.#receive(data);
    });
    socket.addEventListener('close', ({ code, reason }) => {
      if (isOurs()) void this.#lose(code, reason);
    });
  }

  #receive(data: unknown): void {
    try {
      if (typeof data === 'string') this.#obey(Message.parse(JSON.parse(data)));
      else if (data instanceof ArrayBuffer) this.#show(new Uint8Array(data));
    } catch (error) {
      this.#fail(badReply('a message of another form', error));
    }
  }

  #show(bytes: Uint8Array): void {
    this.#position = (this.#position ?? 0) + bytes.length;
    this.#failures = 0;
    this.#shown.push(bytes);
  }

  #obey(message: z.output<typeof Message>): void {
    switch (message.type) {
      case 'ready':
        this.#execId = message.exec_id;
        this.#position = message.from;
        this.#isReady = true;
        for (const part of this.#keys) this.#socket?.send(part);
        this.#keys = [];
        this.#opened.resolve();
        return;
      case 'cut':
        this.#lostBytes += message.to - message.from;
        this.#position = message.to;
        return;
      case 'exit':
        this.#finish(message.result);
        return;
      case 'interrupted':
      // The close that follows says the rest.
    }
  }

  async #lose(closeCode: number, reason: string): Promise<void> {
    const { retries } = this.#target;
    // A quiet terminal may lose its connection now and then for days.
    if (Date.now() - this.#connectedAt > 2 * retries.longestDelayMs) this.#failures = 0;
    this.#drop();
    if (closeCode === REFUSED) {
      this.#fail(new RunnerError('BAD_REQUEST', reason || 'the terminal refused it', { hint: 'See /docs.' }));
      return;
    }
    try {
      await this.#target.explain(this.#execId);
    } catch (error) {
      if (error instanceof RunnerError && error.code !== 'NETWORK') {
        this.#fail(error);
        return;
      }
    }
    // A new terminal is not asked for twice: the first one may be there.
    if (this.#execId === undefined || this.#failures >= retries.reconnects) {
      this.#fail(networkError('the connection to the terminal broke'));
      return;
    }
    const delayMs = delayBefore(this.#failures, retries);
    this.#failures += 1;
    this.#target.tell({ error: networkError('the connection to the terminal broke'), delayMs });
    await pause(delayMs, this.#leaving.signal);
    if (!this.#leaving.signal.aborted) this.#connect();
  }

  /** A WebSocket cannot be told to wait, but the terminal can be left and entered again. */
  #rest(): void {
    this.#isResting = true;
    this.#drop();
  }

  #goOn(): void {
    if (!this.#isResting || this.#leaving.signal.aborted) return;
    this.#isResting = false;
    this.#connect();
  }

  #drop(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isReady = false;
    socket?.close();
  }

  #finish(result: ExecResult | undefined): void {
    this.#leaving.abort();
    this.#drop();
    this.#exit.resolve(result);
    this.#opened.resolve();
    this.#shown.end();
  }

  #fail(error: RunnerError): void {
    this.#leaving.abort();
    this.#drop();
    this.#opened.reject(error);
    this.#exit.reject(error);
    this.#shown.fail(error);
  }
}
