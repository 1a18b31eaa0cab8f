import { request as plainRequest, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Connection } from './endpoint.ts';
import { EngineRefusal, type Engine } from './engine.ts';

const WORDS_KEPT = 2000;

/**
 * The streams of a container that is about to be started, as one connection. By hand: dockerode announces a chunked
 * body, and Podman then takes the first bytes of our stream for it.
 */
export function attach(engine: Engine, id: string): Promise<Duplex> {
  return engine.call(
    'attach to a container',
    (_docker, { abortSignal }) =>
      new Promise<Duplex>((resolve, reject) => {
        const { connection } = engine.endpoint;
        const send = connection.protocol === 'https' ? tlsRequest : plainRequest;
        const request = send({
          ...toRequestOptions(connection),
          method: 'POST',
          path: `/containers/${id}/attach?stream=1&stdin=1&stdout=1&stderr=1`,
          headers: { connection: 'Upgrade', upgrade: 'tcp', 'content-length': 0 },
        });
        const abort = (): void => void request.destroy();
        abortSignal.addEventListener('abort', abort);
        request.on('error', reject);
        request.on('upgrade', (_response, socket, head) => {
          abortSignal.removeEventListener('abort', abort);
          if (head.length > 0) socket.unshift(head);
          resolve(socket);
        });
        request.on('response', (response) => {
          let words = '';
          response.on('data', (bytes: Buffer) => (words = (words + bytes.toString()).slice(0, WORDS_KEPT)));
          response.on('end', () =>
            reject(new EngineRefusal('attach to a container', response.statusCode ?? 500, words.trim())),
          );
        });
        request.end();
      }),
  );
}

/** With TLS the agent has what proves who is who; otherwise a connection of its own is all there is to want. */
function toRequestOptions({ agent, host, port, socketPath }: Connection): RequestOptions {
  if (socketPath !== undefined) return { socketPath, agent: false };
  // The brackets of an IPv6 address belong to URLs.
  return { host: host?.replace(/^\[|\]$/g, ''), port, agent: agent ?? false };
}
