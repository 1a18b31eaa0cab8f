import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BUILT_IN_LANGUAGES } from '../../core/language.ts';
import { findEndpoint } from './endpoint.ts';
import { Engine } from './engine.ts';
import { ImageStore } from './images.ts';

/** Answers as no healthy engine would; the healthy one is in test/e2e/images.test.ts. */
let folder = '';
let server: Server;
let pulls: string[] = [];
let onPull: (response: ServerResponse) => void;
let store: ImageStore;
let time = 0;
const lines: string[] = [];
const onProgress = (text: string): void => void lines.push(text);

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hotcell-images-'));
  server = createServer((request, response) => {
    if (request.url?.startsWith('/images/create') !== true) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"message":"No such image"}');
      return;
    }
    pulls.push(request.url);
    response.writeHead(200, { 'content-type': 'application/json' });
    onPull(response);
  });
  const socket = join(folder, 'engine.sock');
  server.listen(socket);
  await once(server, 'listening');
  const engine = await Engine.connect(findEndpoint({ host: `unix://${socket}` }));
  store = new ImageStore(engine, {
    recipes: '/nowhere',
    languages: BUILT_IN_LANGUAGES,
    pullSilenceMs: 200,
    failureKeptMs: 5000,
    now: () => time,
  });
  pulls = [];
  time = 0;
  lines.length = 0;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const say = (response: ServerResponse, ...messages: readonly object[]): void => {
  for (const message of messages) response.write(`${JSON.stringify(message)}\n`);
};

describe('a pull', () => {
  test('[CX-08] that fails in the middle of a reply of status 200 is an error, and no registry is hammered', async () => {
    onPull = (response) => {
      say(response, { id: 'a', status: 'Pulling fs layer' }, { error: 'write: no space left on device' });
      response.end();
    };
    const expected = {
      code: 'IMAGE_UNAVAILABLE',
      message: 'image python:3.10-slim cannot be pulled: write: no space left on device',
      hint: expect.stringContaining('docker image prune'),
    };
    await expect(store.ensure('python:3.10-slim', onProgress)).rejects.toMatchObject(expected);
    await expect(store.ensure('python:3.10-slim', onProgress)).rejects.toMatchObject(expected);
    expect(pulls).toHaveLength(1);
    time = 5000;
    await expect(store.ensure('python:3.10-slim', onProgress)).rejects.toMatchObject(expected);
    expect(pulls).toHaveLength(2);
  });

  test('[CX-08] of an engine that dies meanwhile is the failure of the engine, and tried again', async () => {
    onPull = (response) => {
      say(response, { id: 'a', status: 'Pulling fs layer' });
      response.destroy();
    };
    await expect(store.ensure('a:1', onProgress)).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
    await expect(store.ensure('a:1', onProgress)).rejects.toMatchObject({ code: 'DRIVER_UNAVAILABLE' });
    expect(pulls).toHaveLength(2);
  });

  test('[CX-08] that says nothing any more is ended', async () => {
    const closed = Promise.withResolvers<undefined>();
    onPull = (response) => {
      response.on('close', () => closed.resolve(undefined));
      say(response, { id: 'a', status: 'Downloading', progressDetail: { current: 1, total: 2 } });
    };
    await expect(store.pull('127.0.0.1:5000/a:1', onProgress)).rejects.toMatchObject({
      message: 'image 127.0.0.1:5000/a:1 cannot be pulled: nothing came for 0.2 s',
      hint: expect.stringContaining('The registry 127.0.0.1:5000 or the network hangs'),
    });
    await closed.promise;
  });

  test('tells at most one line in a second', async () => {
    onPull = (response) => {
      for (let percent = 1; percent <= 50; percent++) {
        say(response, { id: 'a', status: 'Downloading', progressDetail: { current: percent, total: 100 } });
      }
      response.end();
    };
    await store.pull('a:1', onProgress);
    expect(lines).toEqual(['pulling a:1: asking the registry', 'pulled a:1: 100 B in 0.0 s']);
  });

  test('always names a tag, for without one the engine pulls them all', async () => {
    onPull = (response) => response.end();
    const digest = `sha256:${'0'.repeat(64)}`;
    for (const name of ['a', 'a:1', `a@${digest}`, '[::1]:5000/a']) await store.pull(name, onProgress);
    expect(pulls.map((url) => new URLSearchParams(url.split('?')[1]).toString())).toEqual(
      [
        { fromImage: 'a', tag: 'latest' },
        { fromImage: 'a', tag: '1' },
        { fromImage: 'a', tag: digest },
        { fromImage: '[::1]:5000/a', tag: 'latest' },
      ].map((query) => new URLSearchParams(query).toString()),
    );
  });
});

describe('without asking a registry', () => {
  test('an image of ours that was not built says how to build it', async () => {
    await expect(store.ensure('hotcell-node:latest', onProgress)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      hint: 'Build it: hotcell build node',
    });
    expect(pulls).toEqual([]);
  });

  test.each(['../containers/json', 'a?b', 'a b'])('%j is refused as a name', async (name) => {
    await expect(store.ensure(name, onProgress)).rejects.toMatchObject({
      code: 'IMAGE_UNAVAILABLE',
      hint: expect.stringContaining('an image is called'),
    });
    expect(pulls).toEqual([]);
  });
});

test('the image of the registry is chosen while ours is not built', async () => {
  expect(await store.choose({ name: 'python:3.10-slim', recipe: 'python' })).toBe('python:3.10-slim');
  expect(await store.choose({ name: undefined, recipe: 'python' })).toBe('hotcell-python:latest');
  await expect(store.choose({ name: undefined, recipe: undefined })).rejects.toMatchObject({
    code: 'IMAGE_UNAVAILABLE',
  });
});
