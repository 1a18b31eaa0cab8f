import type { ServerResponse } from 'node:http';

export function toProblem(code: number, message: string): object {
  return { jsonrpc: '2.0', error: { code, message }, id: null };
}

/** Answers a request that never came to a server object. */
export function answerProblem(response: ServerResponse, status: number, problem: object): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(problem));
}
