import type { WebSocket } from '@fastify/websocket';
import { HotcellError, messageOf, toHotcellError } from '../../core/errors.ts';
import type { SessionExec } from '../../sessions/api.ts';
import { TerminalControl } from '../../wire/terminal.ts';
import { toErrorReply } from '../error-reply.ts';
import { makeRequestParser } from '../request-problems.ts';
import { toExecResult } from './render-exec.ts';
import type { SessionDoor } from './session-door.ts';
import { takingTurns } from './taking-turns.ts';

/** Answers to pings pile up when a client sends many and reads nothing. */
const MOST_UNSENT_BYTES = 4 * 1024 * 1024;
/** An answer to a ping stands behind the output that is still on its way, which over a slow line takes a while. */
const UNANSWERED_PINGS = 4;
/** How long the other side may take to close after us. */
const CLOSING_MS = 1000;
/** What RFC 6455 has room for. */
const REASON_BYTES = 123;

const CLOSE = { done: 1000, failed: 1011, refused: 1008, restarting: 1012 } as const;

const parseControl = makeRequestParser(TerminalControl);

interface ViewerOptions {
  readonly exec: SessionExec;
  readonly from: number;
  readonly door: SessionDoor;
}

/** One connection that shows a terminal and types into it. Its end is not the end of the terminal. */
export class TerminalViewer {
  readonly #socket: WebSocket;
  readonly #exec: SessionExec;
  readonly #from: number;
  readonly #door: SessionDoor;
  readonly #leaving: AbortController;
  #unanswered = 0;

  constructor(socket: WebSocket, { exec, from, door }: ViewerOptions) {
    this.#socket = socket;
    this.#exec = exec;
    this.#from = from;
    this.#door = door;
    this.#leaving = door.streams.open();
  }

  /** Resolves when the connection is closed. */
  async show(): Promise<void> {
    const socket = this.#socket;
    const { signal } = this.#leaving;
    const closed = Promise.withResolvers<void>();
    socket.once('close', () => {
      this.#leaving.abort();
      closed.resolve();
    });
    // At once, and not when the output comes to an end: a viewer that does not read would keep us from stopping.
    const onAbort = (): void => {
      if (signal.reason instanceof HotcellError) this.#interrupt(signal.reason, CLOSE.restarting);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
    socket.on('pong', () => this.#hear());
    socket.on('ping', () => this.#hear());
    socket.on('message', (data, isBinary) => {
      this.#hear();
      this.#receive(toBytes(data), isBinary);
    });
    const pinging = setInterval(() => this.#ping(), this.#door.heartbeatMs);
    try {
      await this.#send({ type: 'ready', exec_id: this.#exec.id, from: this.#from });
      await this.#showOutput();
    } catch (error) {
      this.#door.log.error({ exec: this.#exec.id, error: messageOf(error) }, 'terminal output failed');
      this.#interrupt(toHotcellError(error), CLOSE.failed);
    } finally {
      await closed.promise;
      clearInterval(pinging);
      this.#door.streams.close(this.#leaving);
    }
  }

  /** Waits for each message to be on its way: the viewer's pace is that of the output log, and nothing piles up. */
  async #showOutput(): Promise<void> {
    for await (const event of takingTurns(this.#exec.follow(this.#from, this.#leaving.signal))) {
      if (event.type === 'exit') {
        await this.#send({ type: 'exit', result: toExecResult(event.result) });
        this.#close(CLOSE.done, 'the command has ended');
        return;
      }
      if (event.type === 'cut') await this.#send(event);
      else await this.#sendRaw(event.bytes);
    }
    if (this.#leaving.signal.aborted) return;
    const letGo = new HotcellError('SHUTTING_DOWN', 'the server has let go of this terminal');
    this.#interrupt(letGo, CLOSE.restarting);
  }

  #receive(bytes: Buffer, isBinary: boolean): void {
    try {
      if (isBinary) this.#exec.write(bytes);
      else this.#obey(readControl(bytes));
    } catch (error) {
      const failure = toHotcellError(error);
      // Keys typed while the command ends come too late; the exit is on its way.
      if (failure.code === 'EXEC_ENDED') return;
      const isOurs = failure.status >= 500;
      if (isOurs)
        this.#door.log.error({ exec: this.#exec.id, error: failure.message }, 'terminal input failed');
      const { detail } = toErrorReply(failure, { ofExecution: false });
      this.#close(isOurs ? CLOSE.failed : CLOSE.refused, detail);
    }
  }

  #obey(control: TerminalControl): void {
    switch (control.type) {
      case 'resize':
        this.#exec.resize({ rows: control.rows, columns: control.cols });
        return;
      case 'eof':
        this.#exec.closeStdin();
        return;
      case 'kill':
        this.#exec.kill().catch((error: unknown) => {
          this.#door.log.warn({ exec: this.#exec.id, error: messageOf(error) }, 'terminal kill failed');
        });
    }
  }

  #hear(): void {
    this.#unanswered = 0;
    // SECURITY: whoever makes us answer without reading the answers would fill our memory.
    if (this.#socket.bufferedAmount > MOST_UNSENT_BYTES) this.#socket.terminate();
  }

  #ping(): void {
    this.#unanswered += 1;
    if (this.#unanswered > UNANSWERED_PINGS) this.#socket.terminate();
    else if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping();
  }

  #interrupt(error: HotcellError, closeCode: number): void {
    // Not waited for: a viewer that does not read cannot be told either.
    const reply = toErrorReply(error, { ofExecution: false });
    void this.#send({ type: 'interrupted', ...reply });
    this.#close(closeCode, reply.detail);
  }

  #send(message: object): Promise<void> {
    return this.#sendRaw(JSON.stringify(message));
  }

  #sendRaw(data: string | Uint8Array): Promise<void> {
    // The error of a connection that is gone is the business of its close event.
    return new Promise((resolve) => this.#socket.send(data, () => resolve()));
  }

  #close(code: number, reason: string): void {
    this.#socket.close(code, shortened(reason));
    const timer = setTimeout(() => this.#socket.terminate(), CLOSING_MS);
    this.#socket.once('close', () => clearTimeout(timer));
  }
}

function readControl(bytes: Buffer): TerminalControl {
  let message: unknown;
  try {
    message = JSON.parse(bytes.toString());
  } catch (error) {
    throw new HotcellError('INVALID_JSON', 'a text message must be JSON', { cause: error });
  }
  return parseControl(message);
}

function toBytes(data: Buffer | ArrayBuffer | Buffer[]): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}

/** As much of a text as a close frame holds, without half a character at the end. */
function shortened(reason: string): string {
  let text = reason;
  while (Buffer.byteLength(text) > REASON_BYTES) text = text.slice(0, -1);
  return text.isWellFormed() ? text : text.slice(0, -1);
}
