import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';

/** Hands images of one engine to another. */
export async function copyImages(from: string, to: string, names: readonly string[]): Promise<void> {
  const query = names.map((name) => `names=${encodeURIComponent(name)}`).join('&');
  const archive = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ socketPath: from, path: `/images/get?${query}` }, resolve)
      .on('error', reject)
      .end();
  });
  if (archive.statusCode !== 200) throw new Error(`the images cannot be had: ${archive.statusCode}`);
  const headers = { 'content-type': 'application/x-tar' };
  const load = request({ socketPath: to, method: 'POST', path: '/images/load?quiet=1', headers });
  const answered = once(load, 'response') as Promise<[IncomingMessage]>;
  await pipeline(archive, load);
  const [response] = await answered;
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`the images cannot be loaded: ${response.statusCode}`);
}
