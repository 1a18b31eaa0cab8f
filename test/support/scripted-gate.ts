import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CellNetwork } from '../../src/egress/cell-network.ts';

/** A request as the gate got it. */
export interface AskedOfGate {
  readonly method: string;
  /** As the code wrote it, put together again from the address and the scheme. */
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** Stands for the gate, the network and all servers behind it: answers by path. */
export interface ScriptedGate {
  readonly network: Pick<CellNetwork, 'variables' | 'port'>;
  readonly asked: readonly AskedOfGate[];
  close(): Promise<void>;
}

type Answer = (request: AskedOfGate, response: ServerResponse) => void;

export async function openScriptedGate(answers: Readonly<Record<string, Answer>>): Promise<ScriptedGate> {
  const asked: AskedOfGate[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '', 'http://not-a-proxy-request');
      if (request.headers['hotcell-scheme'] === 'https') url.protocol = 'https:';
      const entry = {
        method: request.method ?? '',
        url: url.href,
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      asked.push(entry);
      const answer = answers[url.pathname];
      if (answer === undefined) response.writeHead(404).end('no such answer');
      else answer(entry, response);
    });
  });
  server.on('connect', (request, socket) => {
    asked.push({ method: 'CONNECT', url: request.url ?? '', headers: request.headers, body: '' });
    // The program may be killed before it has read this.
    socket.on('error', () => {});
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy = `http://cell:key@127.0.0.1:${port}`;
  return {
    network: { port, variables: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy, NO_PROXY: 'localhost,127.0.0.1' } },
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
