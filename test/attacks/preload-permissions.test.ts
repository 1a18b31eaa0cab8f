import { afterAll, describe, expect, test } from 'vitest';
import type { Permission } from '../../src/wire/permissions.ts';
import { http, read, write } from '../support/permissions.ts';
import { closePlace, describeCodePlaces, runCode } from '../support/code-places.ts';

/** Code, and the one permission that its denial must name. */
const DENIALS: Readonly<Record<string, readonly [code: string, permission: Permission]>> = {
  fetch: [`await fetch('https://api.example.com/v1?key=1')`, http('api.example.com', '/v1', 'GET')],
  'fetch of a Request': [
    `await fetch(new Request('http://a.example:8080/x/y', { headers: { a: 'b' } }))`,
    http('a.example:8080', '/x/y', 'GET'),
  ],
  'node:http': [
    `import http from 'node:http'; http.get('http://a.example/p')`,
    http('a.example', '/p', 'GET'),
  ],
  'node:http by options': [
    `import { request } from 'node:http'; request({ host: 'a.example', port: 81, path: '/p?q' })`,
    http('a.example:81', '/p', 'GET'),
  ],
  'node:https': [`require('https').get('https://a.example/p')`, http('a.example', '/p', 'GET')],
  undici: [`await require('undici').fetch('https://a.example/p')`, http('a.example', '/p', 'GET')],
  'node:net': [`import { connect } from 'node:net'; connect(5432, 'db.example')`, http('db.example:5432')],
  'node:tls': [`require('node:tls').connect({ host: 'a.example', port: 443 })`, http('a.example')],
  'node:http2': [`require('node:http2').connect('https://a.example')`, http('a.example')],
  'node:dns': [`require('node:dns').lookup('a.example', () => {})`, http('a.example')],
  'node:dns/promises': [`await (await import('node:dns/promises')).resolve4('a.example')`, http('a.example')],
  WebSocket: [`new WebSocket('wss://a.example/chat')`, http('a.example')],
  'node:fs': [`import fs from 'node:fs'; fs.readFileSync('/srv/data/a.csv')`, read('/srv/data/a.csv')],
  'node:fs with dots': [`require('fs').readFileSync('/srv/x/../a')`, read('/srv/a')],
  'node:fs with a URL': [`require('fs').readFileSync(new URL('file:///srv/a%20b'))`, read('/srv/a b')],
  'node:fs/promises': [
    `import { readFile } from 'node:fs/promises'; await readFile('/srv/a')`,
    read('/srv/a'),
  ],
  'fs.promises': [`import fs from 'fs'; await fs.promises.writeFile('/srv/a', 'x')`, write('/srv/a')],
  'fs.open': [`require('fs').openSync('/srv/a', 'a+')`, write('/srv/a')],
  'fs.createWriteStream': [`require('fs').createWriteStream('/srv/a')`, write('/srv/a')],
  'fs.readdir': [`require('fs').readdirSync('/srv')`, read('/srv')],
  'fs.rm': [`require('fs').rmSync('/srv/a')`, write('/srv/a')],
  'Bun.file': [`await Bun.file('/srv/a').json()`, read('/srv/a')],
  'Bun.write': [`await Bun.write('/srv/a', 'x')`, write('/srv/a')],
  'Bun.write to a Bun.file': [`await Bun.write(Bun.file('/srv/a'), 'x')`, write('/srv/a')],
  'bun:sqlite': [`import { Database } from 'bun:sqlite'; new Database('/srv/db')`, write('/srv/db')],
  'an import': [`await import('/srv/a.json')`, read('/srv/a.json')],
  'a variable': [`console.log(process.env.API_KEY)`, { type: 'env', variables: ['API_KEY'] }],
};

/** What no permission can allow says so, and asks for nothing. */
const REFUSALS: Readonly<Record<string, string>> = {
  'Bun.spawn': `Bun.spawn(['ls'])`,
  'Bun.$': 'await Bun.$`ls`',
  'child_process.exec': `require('node:child_process').exec('ls')`,
  'a child of a named import': `import { spawnSync } from 'child_process'; spawnSync('ls')`,
  'dgram.createSocket': `require('dgram').createSocket('udp4')`,
  'Bun.listen': `Bun.listen({ hostname: 'localhost', port: 0, socket: { data() {} } })`,
  'Bun.serve': `Bun.serve({ fetch: () => new Response('') })`,
  'new Worker': `new Worker('data:,')`,
  'worker_threads.Worker': `import { Worker } from 'node:worker_threads'; new Worker('', { eval: true })`,
  'bun:ffi': `import { dlopen } from 'bun:ffi'; dlopen('libc.so.6', {})`,
  'process.dlopen': `process.dlopen({}, '/x.node')`,
  'process.execve': `process.execve('/bin/ls', [], {})`,
  'a hidden module': `process.getBuiltinModule('node:child_process').spawn('ls')`,
};

await describeCodePlaces((place) => {
  afterAll(() => closePlace(place));
  describe('a denial', () => {
    test.each(Object.entries(DENIALS))(
      '[MC-02, MC-04] of %s names the permission',
      async (_api, [code, permission]) => {
        const { stderr, denials, outcome } = await runCode(place, code, { values: { API_KEY: 'k' } });
        expect(denials.map((denial) => denial.permission)).toEqual([permission]);
        expect(stderr).toContain('PermissionDenied: permission denied: ');
        expect(stderr).toContain(`— grant ${JSON.stringify(permission)}`);
        expect(outcome).toEqual({ kind: 'exited', code: 1 });
      },
    );

    test.each(Object.entries(REFUSALS))('[MC-02] of %s says that no permission helps', async (_api, code) => {
      const { stderr, denials, outcome } = await runCode(place, code);
      expect(stderr).toMatch(/PermissionDenied: permission denied: .* — .*no permission allows it/);
      expect(denials).toEqual([]);
      expect(outcome).toEqual({ kind: 'exited', code: 1 });
    });

    test('[MC-02] can be caught, says its name, and points at the line of the code', async () => {
      const code = `import { readFileSync } from 'node:fs';

try { readFileSync('/srv/a'); } catch (error) { console.log(error.name, error instanceof Error, error.message); }
function inner(): number { readFileSync('/srv/b', 'utf8'); return 1; }
inner();`;
      const { stdout, stderr } = await runCode(place, code);
      expect(stdout).toBe(
        'PermissionDenied true permission denied: read /srv/a — grant {"type":"file","path":"/srv/a","operations":["read"]}\n',
      );
      expect(stderr).toMatch(/main\.ts:4:\d+/);
      expect(stderr).not.toContain('guest/preload');
    });
  });

  describe('code that asks for nothing', () => {
    test('[MC-02] prints, fails and counts lines as without the hooks', async () => {
      const code = `console.log('out', { a: [1] });
console.error('err');
console.table([{ x: 1 }]);
process.stdout.write('raw\\n');
const type: number = 1;
setTimeout(() => { throw new TypeError('late ' + type); }, 1);`;
      const { stdout, stderr, outcome } = await runCode(place, code);
      expect(stdout).toContain('out {\n  a: [ 1 ],\n}\n');
      expect(stdout).toMatch(/raw\n$/);
      expect(stderr).toMatch(/^err\n/);
      expect(stderr).toContain('TypeError: late 1');
      expect(stderr).toMatch(/main\.ts:6:\d+/);
      expect(outcome).toEqual({ kind: 'exited', code: 1 });
    });

    test('[MC-02] uses its workdir by every way', async () => {
      const code = `import fs, { createWriteStream } from 'node:fs';
import { appendFile, readFile, mkdir } from 'node:fs/promises';
import { Database } from 'bun:sqlite';
await mkdir('deep/er', { recursive: true });
fs.writeFileSync('deep/er/a', '1');
await appendFile('deep/er/a', '2');
await Bun.write('deep/b', Bun.file('deep/er/a'));
await new Promise((done) => createWriteStream('c').end('3', done));
new Database('db.sqlite').run('create table t (a)');
fs.renameSync('c', 'deep/c');
console.log(await readFile('deep/b', 'utf8'), fs.readFileSync('deep/c', 'utf8'), fs.existsSync('db.sqlite'));
console.log(await Array.fromAsync(new Bun.Glob('**/a').scan('.')), fs.readdirSync('deep').sort());
const { z } = await import('./deep/m.ts').catch(() => ({ z: 'none' }));
console.log(z, (await (await fetch('data:text/plain,hi')).text()));`;
      const { stdout, stderr } = await runCode(place, code);
      expect(stderr).toBe('');
      expect(stdout).toBe('12 3 true\n[ "deep/er/a" ] [ "b", "c", "er" ]\nnone hi\n');
    });

    test('[MC-02] sees nothing of the hooks in its environment', async () => {
      const { stdout } = await runCode(
        place,
        `console.log(Object.keys(process.env).sort().join(), Bun.env.HOTCELL_POLICY)`,
      );
      expect(stdout).toBe('BUN_INSTALL_CACHE_DIR,HOME,LANG,PATH,TMPDIR undefined\n');
    });
  });

  describe('variables', () => {
    test('[MC-04] that were granted are there, others are not', async () => {
      const values = { APP_KEY: 'granted', OTHER_KEY: 'withheld-value' };
      const permissions: Permission[] = [{ type: 'env', variables: ['APP_*'] }];
      const code = `console.log(process.env.APP_KEY, Bun.env.APP_KEY, import.meta.env.APP_KEY, JSON.stringify(Bun.env));`;
      const { stdout } = await runCode(place, code, { values, permissions });
      expect(stdout).toMatch(/^granted granted granted /);
      expect(stdout).not.toContain('withheld-value');
    });
  });
});
