import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ErrorReply } from '../wire/execute.ts';
import { API_HEADERS } from './reply-headers.ts';

interface SocketProblem {
  readonly status: number;
  readonly body: ErrorReply;
}

const TOO_SLOW: SocketProblem = {
  status: 408,
  body: {
    detail: 'the request did not arrive in time',
    code: 'REQUEST_TIMEOUT',
    hint: 'Send the whole request at once.',
  },
};
const HEADERS_TOO_LARGE: SocketProblem = {
  status: 431,
  body: {
    detail: 'the headers are too large',
    code: 'HEADERS_TOO_LARGE',
    hint: 'Send fewer or shorter headers.',
  },
};
const NOT_HTTP: SocketProblem = {
  status: 400,
  body: { detail: 'this is not a valid HTTP/1.1 request', code: 'BAD_REQUEST', hint: 'Use an HTTP client.' },
};

/** Answers what cannot be read as HTTP; it never becomes a request, so it has to be answered on the bare socket. */
export function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(toBytes(problemOf(error.code)), () => socket.destroy());
}

function problemOf(code: string | undefined): SocketProblem {
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return TOO_SLOW;
  if (code === 'HPE_HEADER_OVERFLOW') return HEADERS_TOO_LARGE;
  return NOT_HTTP;
}

function toBytes({ status, body }: SocketProblem): string {
  const text = JSON.stringify(body);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
    ...API_HEADERS,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', text].join('\r\n');
}
