import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { HotcellError } from '../core/errors.ts';
import { toErrorReply } from './error-reply.ts';
import { API_HEADERS } from './reply-headers.ts';

/** Answers what cannot be read as HTTP; it never becomes a request, so it has to be answered on the bare socket. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(toBytes(problemOf(error.code)), () => socket.destroy());
}

function problemOf(code: string | undefined): HotcellError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HotcellError('REQUEST_TIMEOUT', 'the request did not arrive in time');
    case 'HPE_HEADER_OVERFLOW':
      return new HotcellError('HEADERS_TOO_LARGE', 'the headers are too large');
    case undefined:
    default:
      return new HotcellError('BAD_REQUEST', 'this is not a valid HTTP/1.1 request');
  }
}

function toBytes(error: HotcellError): string {
  const { status } = error;
  const text = JSON.stringify(toErrorReply(error, { ofExecution: false }));
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
    ...API_HEADERS,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', text].join('\r\n');
}
