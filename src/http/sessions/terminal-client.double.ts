import * as z from 'zod';

const Control = z.record(z.string(), z.unknown());

/** A WebSocket as a browser has it, with everything that came. For tests. */
export class TerminalClient implements Disposable {
  readonly socket: WebSocket;
  readonly control: Record<string, unknown>[] = [];
  output = '';
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly opened: Promise<void>;

  constructor(url: string, { headers = {}, protocols = [] }: TerminalOpening = {}) {
    this.socket = new WebSocket(url, { headers, protocols });
    this.socket.binaryType = 'arraybuffer';
    const opened = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<{ code: number; reason: string }>();
    this.opened = opened.promise;
    this.closed = closed.promise;
    this.opened.catch(() => undefined);
    this.socket.addEventListener('open', () => opened.resolve());
    this.socket.addEventListener('error', () => opened.reject(new Error('the WebSocket was refused')));
    this.socket.addEventListener('close', ({ code, reason }) => closed.resolve({ code, reason }));
    this.socket.addEventListener('message', ({ data }) => {
      if (typeof data === 'string') this.control.push(Control.parse(JSON.parse(data)));
      else if (data instanceof ArrayBuffer) this.output += Buffer.from(data).toString('latin1');
    });
  }

  type(text: string): void {
    this.socket.send(Buffer.from(text));
  }

  say(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  [Symbol.dispose](): void {
    this.socket.close();
  }
}

interface TerminalOpening {
  readonly headers?: Record<string, string>;
  readonly protocols?: string[];
}
