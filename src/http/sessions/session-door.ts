import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { HotcellError } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import type { Caller, Session, SessionExec, Sessions } from '../../sessions/api.ts';
import type { HttpDependencies } from '../dependencies.ts';
import type { Callers } from '../guard.ts';
import type { OpenStreams } from '../open-streams.ts';
import { BodyRoom } from './body-room.ts';

const ID = /^[A-Za-z0-9_-]{1,64}$/;
const HEARTBEAT_MS = 15_000;
/** Largest bodies that may be under way at once. */
const LARGE_BODIES = 4;

/** What the routes of sessions have in common: who asks, and for which session and command. */
export class SessionDoor {
  readonly streams: OpenStreams;
  readonly log: Log;
  readonly heartbeatMs: number;
  readonly bodyLimitBytes: number;
  readonly bodies: BodyRoom;
  readonly #found = new WeakMap<IncomingMessage, Session>();
  readonly #deps: HttpDependencies;
  readonly #callers: Callers;

  constructor(deps: HttpDependencies, { callers, streams }: { callers: Callers; streams: OpenStreams }) {
    this.#deps = deps;
    this.#callers = callers;
    this.streams = streams;
    this.log = deps.log;
    this.heartbeatMs = deps.options.heartbeatMs ?? HEARTBEAT_MS;
    this.bodyLimitBytes = deps.options.sessions.bodyLimitBytes;
    this.bodies = new BodyRoom({
      freeBytes: deps.options.bodyLimitBytes,
      totalBytes: LARGE_BODIES * this.bodyLimitBytes,
    });
  }

  get sessions(): Sessions {
    const { sessions, sessionsProblem } = this.#deps;
    if (sessions !== undefined) return sessions;
    throw new HotcellError('SESSIONS_UNAVAILABLE', sessionsProblem ?? 'this server has no sessions');
  }

  callerOf(request: FastifyRequest): Caller {
    return this.#callers.of(request);
  }

  /** Looked for once in a request. */
  find(request: FastifyRequest): Session {
    const known = this.#found.get(request.raw);
    if (known !== undefined) return known;
    const id = parameterOf(request, 'id');
    // SECURITY: ids become parts of paths further below, so they are words or nothing at all.
    if (!ID.test(id)) throw new HotcellError('SESSION_UNKNOWN', 'there is no such session');
    const session = this.sessions.find(this.callerOf(request), id);
    this.#found.set(request.raw, session);
    return session;
  }

  findExec(request: FastifyRequest): SessionExec {
    return findExecById(this.find(request), parameterOf(request, 'exec_id'));
  }
}

export function findExecById(session: Session, id: string): SessionExec {
  if (!ID.test(id)) throw new HotcellError('EXEC_UNKNOWN', 'there is no such command');
  return session.findExec(id);
}

function parameterOf({ params }: FastifyRequest, name: string): string {
  if (typeof params !== 'object' || params === null) return '';
  const value: unknown = Reflect.get(params, name);
  return typeof value === 'string' ? value : '';
}
