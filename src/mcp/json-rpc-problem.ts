import type { ServerResponse } from 'node:http';

interface Problem {
  readonly status: number;
  readonly code: number;
  readonly message: string;
}

/** Answers a request that never came to a server object. */
export function answerProblem(response: ServerResponse, { status, code, message }: Problem): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null });
  response.writeHead(status, { 'content-type': 'application/json' }).end(body);
}
