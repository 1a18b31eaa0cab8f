import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ScriptedBenches, run } from './scripted-benches.double.ts';
import type { ScriptedSite } from './scripted-site.double.ts';
import type { KeptWorkbenches } from './workbenches.ts';

const ME = { tenant: 'me' };
/** What the hooks say of a file that may not be read. */
const DENIED = `hotcell-denied: ${JSON.stringify({
  action: 'read',
  permission: { type: 'file', path: '/a', operations: ['read'] },
})}\n`;

let benches: ScriptedBenches;
let site: ScriptedSite;
let all: KeptWorkbenches;

beforeEach(() => {
  benches = new ScriptedBenches();
  ({ site } = benches);
  all = benches.open();
});
afterEach(() => benches[Symbol.asyncDispose]());

describe('permissions', () => {
  const http = { type: 'http', host: 'example.org' } as const;

  test('[MC-04] reach the gate as soon as they change', async () => {
    const bench = all.open(ME);
    await run(bench, '1');
    expect(site.allowed).toEqual([]);
    bench.permissions.grant(http);
    await run(bench, '2');
    expect(site.allowed).toEqual([[{ host: 'example.org' }]]);
    bench.permissions.grant({ ...http, host: 'example.net', methods: ['GET'] });
    await nextTurn();
    expect(site.allowed.at(-1)).toEqual([{ host: 'example.org' }, { host: 'example.net', methods: ['GET'] }]);
    bench.permissions.revoke(http);
    await nextTurn();
    expect(site.allowed.at(-1)).toEqual([{ host: 'example.net', methods: ['GET'] }]);
    await bench.close();
    expect(site.allowed.at(-1)).toBe('closed');
  });

  test('[MC-04] what the gate refused is a denial that names the permission', async () => {
    const refusal = {
      at: '',
      host: 'example.org',
      port: 443,
      reason: 'not on the list',
      code: 'not_allowed',
    } as const;
    site.refusals = [
      refusal,
      refusal,
      { ...refusal, host: '10.0.0.1', code: 'ip_literal', reason: 'an address' },
    ];
    site.program = (exec) => exec.exit(1);
    const result = await run(all.open(ME), 'await fetch("https://example.org")');
    expect(result).toMatchObject({ status: 'denied', message: 'a permission is missing: HTTP example.org' });
    expect(result.denials).toEqual([{ action: 'connect to example.org:443', permission: http }]);
    expect(result.warnings).toEqual(['10.0.0.1:443 was refused: an address']);
    // No rules: it was opened to say what was wanted.
    expect(site.allowed[0]).toEqual([]);
    site.program = (exec) => exec.exit(0);
    expect(await run(all.open(ME), 'fetch("https://example.org")')).toMatchObject({
      status: 'ok',
      denials: [{}],
    });
  });

  test('[MC-04] variables are seen when they are granted, and cannot take the place of ours', async () => {
    all = benches.open({ grantable: { env: ['*'] } });
    const bench = all.open(ME);
    await run(bench, '');
    bench.permissions.grant({ type: 'env', variables: ['TOK*', 'HTTP_*'] });
    bench.permissions.grant(http);
    await run(bench, '');
    const [before, after] = site.cells[0]?.codes.map((exec) => exec.request) ?? [];
    expect(before?.verbatim?.env).toEqual({});
    expect(after?.verbatim?.env).toEqual({ TOKEN: 'secret' });
    expect(after?.env).toMatchObject({ HTTP_PROXY: 'http://gate' });
  });

  test('[MC-04] in a container everything on stderr is the code’s own', async () => {
    site.program = (exec) => {
      exec.say(DENIED, 'stderr');
      exec.exit(1);
    };
    expect(await run(all.open(ME), '')).toMatchObject({ status: 'error', stderr: DENIED, denials: [] });
  });

  test('[MC-04] where walls are around commands, Bun has the hooks, and others get what was granted', async () => {
    site.confines = 'commands';
    all = benches.open({ grantable: { file: [benches.folder], env: ['TOKEN'] } }, { mode: 'preload' });
    const bench = all.open(ME);
    bench.permissions.grant({ type: 'file', path: benches.folder, operations: ['read'] });
    bench.permissions.grant(http);
    site.program = (exec) => {
      exec.say(`${DENIED}rest`, 'stderr');
      exec.exit(1);
    };
    const result = await run(bench, '');
    expect(result).toMatchObject({ status: 'denied', stderr: 'rest', denials: [{ action: 'read' }] });
    await run(bench, '', { language: 'python' });
    const [bun, python] = site.cells[0]?.codes.map((exec) => exec.request) ?? [];
    expect(bun?.argv).toContain('{guest}/preload/hooks.ts');
    expect(bun).toMatchObject({ cwd: '/tmp/work', reach: { read: [benches.folder], programs: false } });
    expect(JSON.parse(bun?.verbatim?.env['HOTCELL_POLICY'] ?? '')).toMatchObject({
      http: [{ host: http.host }],
      file: [{ path: benches.folder, operations: ['read'] }],
      withheld: ['TOKEN'],
    });
    expect(python?.reach).toEqual({ read: [benches.folder], write: [], port: 4321, programs: true });
  });
});
