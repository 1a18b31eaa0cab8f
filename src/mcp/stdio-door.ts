import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Owner } from '../workbench/api.ts';
import type { McpDoor } from './door.ts';

/** Room for the largest arguments that the schemas let through. */
const MOST_MESSAGE_BYTES = 64 * 1024 * 1024;

export interface StdioStreams {
  readonly stdin: Readable;
  readonly stdout: Writable;
}

export interface StdioConnection {
  /** Resolves when the client has closed its end or does not read any more. */
  readonly ended: Promise<void>;
  /** Answers nothing more, and ends what calls were waiting for. */
  close(): Promise<void>;
}

/** Serves one client over a pair of streams. The process is the client's own, and so is the session. */
export function serveOverStdio(door: McpDoor, owner: Owner, streams: StdioStreams): StdioConnection {
  const ended = Promise.withResolvers<void>();
  const desk = door.makeDesk(owner, { keepsSession: true });
  const transport = new WatchedTransport(streams, () => ended.resolve());
  const connection = serveStdio(() => door.makeServer(desk), {
    transport,
    onerror: (error) => door.log.debug({ error: error.message }, 'mcp message unreadable'),
  });
  return { ended: ended.promise, close: () => connection.close() };
}

/** Tells when it is closed, whoever closes it. */
class WatchedTransport extends StdioServerTransport {
  readonly #onClosed: () => void;

  constructor({ stdin, stdout }: StdioStreams, onClosed: () => void) {
    super(stdin, stdout, { maxBufferSize: MOST_MESSAGE_BYTES });
    this.#onClosed = onClosed;
  }

  override async close(): Promise<void> {
    await super.close();
    this.#onClosed();
  }
}
