import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Permission } from '../../src/wire/permissions.ts';
import { closePlace, onlyPreload, runCode } from '../support/code-places.ts';
import { http, read } from '../support/permissions.ts';
import { openScriptedGate, type ScriptedGate } from '../support/scripted-gate.ts';
import { tmpdirOnTmpfs } from '../support/server.ts';

describe('what was denied, once it is granted', () => {
  const place = onlyPreload();
  afterAll(() => closePlace(place));
  let folder = '';
  let gate: ScriptedGate;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-granted-'));
    chmodSync(folder, 0o700);
    writeFileSync(join(folder, 'a.txt'), 'content', { mode: 0o600 });
    gate = await openScriptedGate({
      '/v1': (request, response) =>
        void response.setHeader('content-type', 'text/plain').end(`${request.method} ${request.body}`),
      '/moved': (_request, response) => void response.writeHead(302, { location: '/v1' }).end(),
      '/away': (_request, response) =>
        void response.writeHead(307, { location: 'http://other.example/v1' }).end(),
      '/slow': (_request, response) => void response.write('first '),
    });
  });
  afterEach(async () => {
    await gate.close();
    rmSync(folder, { recursive: true });
  });

  /** Runs code, grants what its denial names, runs it again. */
  async function runTwice(code: string, values: Record<string, string> = {}) {
    const first = await runCode(place, code, { values, network: gate.network });
    expect(first.denials).toHaveLength(1);
    const permissions = first.denials.map(({ permission }) => permission);
    return runCode(place, code, { permissions, values, network: gate.network });
  }

  test('[MC-04] a file is read, and its neighbour is not', async () => {
    writeFileSync(join(folder, 'b.txt'), 'neighbour');
    const code = `import { readFileSync } from 'node:fs';
console.log(readFileSync(${JSON.stringify(join(folder, 'a.txt'))}, 'utf8'));
try { console.log(await (await Bun.fetch('file://${folder}/b.txt')).text()); } catch (error) { console.log(error.code); }
try { process.stdout.constructor('${folder}/a.txt'); } catch {}`;
    const { stdout, denials } = await runTwice(code);
    expect({ stdout, denials }).toEqual({ stdout: 'content\nEACCES\n', denials: [] });
  });

  test('[MC-04] a file that does not exist yet is written', async () => {
    const path = join(folder, 'new.txt');
    const { denials, outcome } = await runTwice(`await Bun.write(${JSON.stringify(path)}, 'written');`);
    expect({ denials, outcome }).toEqual({ denials: [], outcome: { kind: 'exited', code: 0 } });
    expect(readFileSync(path, 'utf8')).toBe('written');
  });

  test('[MC-04] reading is not writing', async () => {
    const path = join(folder, 'a.txt');
    const permissions: Permission[] = [read(path)];
    const code = `await Bun.write(${JSON.stringify(path)}, 'x').catch((error) => console.log(error.name));
new (process.stdout.constructor)(${JSON.stringify(path)}).on('error', (error) => console.log(error.code ?? error.name)).end('x');`;
    await runCode(place, code, { permissions });
    expect(readFileSync(path, 'utf8')).toBe('content');
  });

  test('[MC-04] a variable is there', async () => {
    const { stdout } = await runTwice(`console.log(process.env.API_KEY);`, { API_KEY: 'the key' });
    expect(stdout).toBe('the key\n');
  });

  test('[MC-04] a host answers, and the answer says where it came from', async () => {
    const code = `const response = await fetch('https://api.example.com/v1?q=1', { headers: { 'x-mine': 'yes', 'hotcell-scheme': 'http' } });
console.log(response.status, response.url, response.redirected, await response.text());`;
    const { stdout, stderr } = await runTwice(code);
    expect({ stdout, stderr }).toEqual({
      stdout: '200 https://api.example.com/v1?q=1 false GET \n',
      stderr: '',
    });
    expect(gate.asked).toHaveLength(1);
    expect(gate.asked[0]).toMatchObject({ method: 'GET', url: 'https://api.example.com/v1?q=1' });
    expect(gate.asked[0]?.headers).toMatchObject({
      'x-mine': 'yes',
      'proxy-authorization': `Basic ${Buffer.from('cell:key').toString('base64')}`,
    });
  });

  test('[MC-04] bodies are sent, as text and piece by piece', async () => {
    const code = `const post = (body) => fetch('http://api.example.com/v1', { method: 'POST', body });
console.log(await (await post('text')).text());
const stream = new ReadableStream({ async start(c) { for (const part of ['a', 'b', 'c']) { c.enqueue(part); await Bun.sleep(1); } c.close(); } });
console.log(await (await post(stream)).text());
console.log(await (await fetch(new Request('http://api.example.com/v1', { method: 'POST', body: 'request' }))).text());`;
    const { stdout } = await runTwice(code);
    expect(stdout).toBe('POST text\nPOST abc\nPOST request\n');
  });

  test('[MC-04] a redirect is followed where that is allowed, and asked for where it is not', async () => {
    const permissions: Permission[] = [http('api.example.com')];
    const code = `const moved = await fetch('https://api.example.com/moved', { headers: { authorization: 'x' } });
console.log(moved.url, moved.redirected, await moved.text());
const stays = await fetch('https://api.example.com/moved', { redirect: 'manual' });
console.log(stays.status, stays.headers.get('location'));
await fetch('https://api.example.com/moved', { redirect: 'error' }).catch((error) => console.log(error.name));
await fetch('https://api.example.com/away');`;
    const { stdout, denials } = await runCode(place, code, { permissions, network: gate.network });
    expect(stdout).toBe('https://api.example.com/v1 true GET \n302 /v1\nTypeError\n');
    expect(denials.map(({ permission }) => permission)).toEqual([http('other.example', '/v1', 'GET')]);
    expect(gate.asked.map(({ url }) => url)).not.toContain('http://other.example/v1');
  });

  test('[MC-04] a request can be given up, and its answer read as it comes', async () => {
    const permissions: Permission[] = [http('api.example.com')];
    const code = `const controller = new AbortController();
const response = await fetch('https://api.example.com/slow', { signal: controller.signal });
const reader = response.body.getReader();
console.log(new TextDecoder().decode((await reader.read()).value));
controller.abort();
await reader.read().catch((error) => console.log(error.name));`;
    const { stdout } = await runCode(place, code, { permissions, network: gate.network });
    expect(stdout).toBe('first \nAbortError\n');
  });

  test('[MC-04] methods and paths that were not granted are asked for', async () => {
    const permissions: Permission[] = [http('api.example.com', '/v*', 'GET')];
    const code = `console.log((await fetch('https://api.example.com/v1')).status);
await fetch('https://api.example.com/v1', { method: 'post', body: 'x' }).catch((error) => console.log(error.message));
await fetch('https://api.example.com/w').catch((error) => console.log(error.message));
await fetch('https://sub.api.example.com/v1').catch((error) => console.log(error.message));`;
    const { stdout, denials } = await runCode(place, code, { permissions, network: gate.network });
    expect(stdout).toMatch(/^200\npermission denied: POST https:\/\/api\.example\.com\/v1 /);
    expect(denials).toHaveLength(3);
    expect(gate.asked).toHaveLength(1);
  });

  test.each([
    ['node:http', `import { get } from 'node:http'; get('http://api.example.com/v1', show);`, 'http'],
    [
      'node:https',
      `import https from 'node:https'; https.get({ host: 'api.example.com', path: '/v1' }, show);`,
      'https',
    ],
    [
      'both, beside node:net',
      `import 'node:net'; require('https').request('https://api.example.com/v1', { headers: { a: 'b' } }).on('response', show).end();`,
      'https',
    ],
  ])('[MC-04] %s goes through the gate, too', async (_module, request, scheme) => {
    const code = `${request}
function show(response) { response.setEncoding('utf8').on('data', (text) => console.log(response.statusCode, text)); }`;
    const { stdout, stderr } = await runTwice(code);
    expect({ stdout, stderr }).toEqual({ stdout: '200 GET \n', stderr: '' });
    expect(gate.asked.map(({ url }) => url)).toEqual([`${scheme}://api.example.com/v1`]);
    expect(gate.asked[0]?.headers['proxy-authorization']).toBe(
      `Basic ${Buffer.from('cell:key').toString('base64')}`,
    );
  });

  test('[MC-04] whoever goes around the hooks meets the gate, which decides', async () => {
    const code = `console.log(await Bun.fetch('https://evil.example/v1').then((r) => r.status, (error) => error.name));
console.log(await Bun.fetch('http://evil.example/v1').then((r) => r.status));
console.log(await Bun.fetch('http://127.0.0.1:1/').then((r) => r.status, (error) => error.code));`;
    await runCode(place, code, { network: gate.network });
    expect(gate.asked.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'CONNECT evil.example:443',
      'GET http://evil.example/v1',
    ]);
  });

  test('[MC-02] a grant without a way out says so', async () => {
    const permissions: Permission[] = [http('api.example.com')];
    const { stderr, denials } = await runCode(place, `await fetch('https://api.example.com/v1')`, {
      permissions,
    });
    expect(stderr).toContain('there is no way to the network');
    expect(denials).toEqual([]);
  });
});
