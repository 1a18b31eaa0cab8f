import websocket, { type WebSocket } from '@fastify/websocket';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import * as z from 'zod';
import { HotcellError } from '../../core/errors.ts';
import type { SessionExec } from '../../sessions/api.ts';
import { KEY_PROTOCOL_PREFIX, TERMINAL_PROTOCOL } from '../../wire/terminal.ts';
import { PlainText } from '../../wire/text.ts';
import { makeQueryParser, numberText } from '../request-query.ts';
import { findExecById, type SessionDoor } from './session-door.ts';
import { TerminalViewer } from './terminal-viewer.ts';

const MiB = 1024 * 1024;
const LARGEST_MESSAGE_BYTES = 256 * 1024;
/** What a viewer gets to see of the past unless it asks for more. */
const SCROLL_BACK_BYTES = MiB;
const USUAL_SIZE = { rows: 24, columns: 80 };
/** As RFC 6455 has it: 16 bytes in base64. */
const HANDSHAKE_KEY = /^[A-Za-z0-9+/]{22}==$/;

const Cells = numberText({ min: 1, max: 1000 });
const parseQuery = makeQueryParser(
  z.strictObject({
    rows: Cells.optional(),
    cols: Cells.optional(),
    command: PlainText.min(1).max(4096).optional(),
    exec_id: z.string().optional(),
    from: numberText({ max: Number.MAX_SAFE_INTEGER }).optional(),
  }),
);

interface Attachment {
  readonly exec: SessionExec;
  readonly from: number;
}

/** `GET …/terminal`: a terminal over a WebSocket. It outlives its viewers; `exec_id` attaches one more. */
export async function addTerminalRoute(app: FastifyInstance, door: SessionDoor): Promise<void> {
  const attachments = new WeakMap<FastifyRequest, Attachment>();
  await app.register(websocket, {
    options: {
      maxPayload: LARGEST_MESSAGE_BYTES,
      perMessageDeflate: false,
      handleProtocols: chooseProtocol,
    },
    // The viewer ends its connection itself, also after an error, so that the other side gets to see the reason.
    errorHandler: (error) => door.log.debug({ error: error.message }, 'terminal connection failed'),
    preClose: (done) => done(),
  });
  app.route({
    method: 'GET',
    url: '/v1/sessions/:id/terminal',
    websocket: true,
    exposeHeadRoute: false,
    // Before the upgrade, so that whatever is refused is an HTTP answer like any other.
    preHandler: async (request) => {
      attachments.set(request, await attach(door, request));
    },
    handler: (socket: WebSocket, request: FastifyRequest) => {
      const attachment = attachments.get(request);
      if (attachment === undefined) throw new RangeError('nobody attached this viewer');
      void new TerminalViewer(socket, { ...attachment, door }).show();
    },
  });
}

/** Whether a connection may be taken over from HTTP: everything else that asks for it is answered as if it had not. */
export function isTerminalUpgrade(request: {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: { readonly upgrade?: string | undefined };
}): boolean {
  const [path = ''] = (request.url ?? '').split('?', 1);
  return (
    request.method === 'GET' &&
    request.headers.upgrade?.toLowerCase() === 'websocket' &&
    /^\/v1\/sessions\/[^/]+\/terminal$/.test(path)
  );
}

async function attach(door: SessionDoor, request: FastifyRequest): Promise<Attachment> {
  // A terminal for a connection that cannot be made would stay without a viewer.
  requireHandshake(request);
  const { rows, cols, command, exec_id: execId, from } = parseQuery(request);
  const session = door.find(request);
  if (execId === undefined) {
    const size = { rows: rows ?? USUAL_SIZE.rows, columns: cols ?? USUAL_SIZE.columns };
    const exec = await session.openTerminal({ size, env: {}, ...(command === undefined ? {} : { command }) });
    return { exec, from: from ?? 0 };
  }
  if (command !== undefined) {
    throw new HotcellError('INVALID_REQUEST', 'command: a terminal that is there has its command already', {
      field: 'command',
    });
  }
  const exec = findExecById(session, execId);
  const { kind, state } = exec.describe();
  if (kind !== 'terminal') {
    throw new HotcellError('INVALID_REQUEST', 'exec_id: this command runs without a terminal', {
      field: 'exec_id',
      hint: 'GET …/execs/{exec_id}/output follows a command without a terminal.',
    });
  }
  if (rows !== undefined && cols !== undefined && state !== 'ended') exec.resize({ rows, columns: cols });
  return { exec, from: from ?? Math.max(0, exec.outputBytes - SCROLL_BACK_BYTES) };
}

function requireHandshake({ ws, headers }: FastifyRequest): void {
  const version = headers['sec-websocket-version'];
  if (ws && version === '13' && HANDSHAKE_KEY.test(headers['sec-websocket-key'] ?? '')) return;
  throw new HotcellError('BAD_REQUEST', 'this is not the handshake of a WebSocket of version 13', {
    hint: 'Open this address as a WebSocket.',
  });
}

/** Browsers want one of the names that they offered; the key is named back only to a client that offers nothing else. */
function chooseProtocol(offered: Set<string>): string | false {
  if (offered.has(TERMINAL_PROTOCOL)) return TERMINAL_PROTOCOL;
  return [...offered].find((name) => name.startsWith(KEY_PROTOCOL_PREFIX)) ?? false;
}
