import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';

const DRAIN_MS = 1000;
/** Simple clients send all that they announced before they look for an answer. */
const DRAIN_ANNOUNCED_BYTES = 16 * 1024 * 1024;
/** A body in chunks may have no end. */
const DRAIN_CHUNKED_BYTES = 1024 * 1024;

/** What of a request's body has not come yet, at most. */
export function unreadBytes({ headers, complete }: IncomingMessage): number {
  if (complete) return 0;
  if (headers['transfer-encoding'] !== undefined) return Number.POSITIVE_INFINITY;
  return Number(headers['content-length'] ?? 0);
}

/**
 * An answer that is given before the body of its request has come: it goes out at once, the connection ends a moment
 * later. A socket that is closed with unread bytes is reset, and a client that is still sending would see the reset
 * instead of the answer. Little bodies are left to Node, which reads them and keeps the connection.
 * SECURITY: Node would read on for as long as bytes come.
 */
export function answerBeforeBody(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
  const unread = unreadBytes(request.raw);
  if (unread === 0 || (unread <= DRAIN_CHUNKED_BYTES && reply.getHeader('connection') !== 'close'))
    return payload;
  request.raw.pause();
  reply.header('connection', 'close');
  if (typeof payload === 'string') reply.header('content-length', Buffer.byteLength(payload));
  return isSent(payload) ? Readable.from(thenDrain(payload, request.raw), { objectMode: false }) : payload;
}

type Sent = string | Uint8Array | AsyncIterable<Uint8Array>;

function isSent(payload: unknown): payload is Sent {
  return typeof payload === 'string' || payload instanceof Uint8Array || payload instanceof Readable;
}

async function* thenDrain(payload: Sent, request: IncomingMessage): AsyncGenerator<string | Uint8Array> {
  if (typeof payload === 'string' || payload instanceof Uint8Array) yield payload;
  else yield* payload;
  await drain(request);
}

/** Reads on for a moment and forgets what comes. When it is too much, the client has the rest of the moment to look. */
function drain(request: IncomingMessage): Promise<void> {
  const isChunked = request.headers['transfer-encoding'] !== undefined;
  let left = isChunked ? DRAIN_CHUNKED_BYTES : DRAIN_ANNOUNCED_BYTES;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, DRAIN_MS);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    request.on('data', (chunk: Uint8Array) => {
      left -= chunk.length;
      if (left < 0) request.pause();
    });
    request.once('end', done);
    request.once('close', done);
    request.resume();
  });
}
