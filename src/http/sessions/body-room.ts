import type { FastifyReply, FastifyRequest } from 'fastify';
import { HotcellError } from '../../core/errors.ts';

const RETRY_AFTER_SECONDS = 1;

interface Room {
  /** Bodies up to this size are not counted. */
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** SECURITY: a body is in memory as a whole; without a bound on all of them together a few clients could fill it. */
export class BodyRoom {
  readonly #room: Room;
  #takenBytes = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  /** Takes the room that a request announces, until its answer is given. Throws TOO_BUSY when there is none left. */
  take(request: FastifyRequest, reply: FastifyReply): void {
    const bytes = announcedBytes(request);
    // One that is larger than its route allows is refused with better words, and unread.
    if (bytes <= this.#room.freeBytes || bytes > request.routeOptions.bodyLimit) return;
    if (this.#takenBytes + bytes > this.#room.totalBytes) {
      throw new HotcellError('TOO_BUSY', 'too many large requests come at once', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    this.#takenBytes += bytes;
    reply.raw.once('close', () => {
      this.#takenBytes -= bytes;
    });
  }
}

function announcedBytes({ headers, routeOptions }: FastifyRequest): number {
  // Nobody knows how long a body in chunks will be.
  if (headers['transfer-encoding'] !== undefined) return routeOptions.bodyLimit;
  return Number(headers['content-length'] ?? 0);
}
