import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { messageOf } from '../core/errors.ts';
import { endToEnd, type PlainRequest } from './plain-request.ts';
import { pump } from './pump.ts';
import { toFailureReply } from './refusal-reply.ts';

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Connected to the host of the request, and used for nothing else. */
  readonly server: Socket;
  /** The headers of the plan, with what the gate adds to them. */
  readonly headers: readonly string[];
}

const IDLE_MS = 15 * 60_000;

/** Sends a request on and its answer back. Both are read and written anew: no byte is taken over without being understood. */
export function forward(plan: PlainRequest, { request, response, server, headers }: Exchange): void {
  const { to, target } = plan;
  // SECURITY: no agent, not even `false`: each makes connections of its own, to wherever it thinks.
  const outgoing = httpRequest({
    createConnection: () => server,
    setHost: false,
    method: plan.request.method,
    path: target,
    headers: [...headers],
  });
  const giveUp = (why: string): void => {
    server.destroy();
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { status, headers: own, body } = toFailureReply(to, why);
    response.writeHead(status, own).end(body);
  };
  server.setTimeout(IDLE_MS, () => server.destroy());
  outgoing.on('error', (error) => giveUp(error.message));
  outgoing.on('upgrade', () => giveUp('it wants to speak another protocol'));
  outgoing.on('response', (incoming) => {
    try {
      sendBack(incoming, response);
    } catch (error) {
      giveUp(messageOf(error));
    }
  });
  request.on('error', () => server.destroy());
  response.on('close', () => server.destroy());
  // What has a body without end is answered while it comes.
  outgoing.flushHeaders();
  void pump(request, outgoing);
}

function sendBack(incoming: IncomingMessage, response: ServerResponse): void {
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage ?? '', [
    ...endToEnd(incoming.rawHeaders),
    'Connection',
    'close',
  ]);
  // Whoever waits for events wants to know now that some will come.
  response.flushHeaders();
  // Cut off there, cut off here: a program must not take a part for the whole.
  incoming.on('error', () => response.destroy());
  void pump(incoming, response);
}
