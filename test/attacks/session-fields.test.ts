import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SessionTarget, expectHelpful } from '../support/session-target.ts';

const LONG = 'x'.repeat(100_000);

const OF_SESSIONS: readonly [field: string, more: object][] = [
  ['limits', { limits: 1 }],
  ['limits.cpus', { limits: { cpus: 0 } }],
  ['limits.cpus', { limits: { cpus: -1 } }],
  ['limits.cpus', { limits: { cpus: '1' } }],
  ['limits.memory_mb', { limits: { memory_mb: 1.5 } }],
  ['limits.memory_mb', { limits: { memory_mb: 0 } }],
  ['limits.disk_mb', { limits: { disk_mb: 1 } }],
  ['limits.processes', { limits: { processes: 1 } }],
  ['limits.evil', { limits: { evil: 1 } }],
  ['ttl_s', { ttl_s: 0 }],
  ['ttl_s', { ttl_s: 1e300 }],
  ['ttl_s', { ttl_s: '60' }],
  ['dotenv', { dotenv: 'yes' }],
  ['setup', { setup: 1 }],
  ['network', { network: 'all' }],
  ['network', { network: 1 }],
];

let target: SessionTarget;
beforeAll(async () => {
  target = await SessionTarget.open();
});
afterAll(() => target[Symbol.asyncDispose]());

describe('fields', () => {
  const FIELDS: readonly [route: string, field: string, body: object][] = [
    ['', 'project_id', { runtime_type: 'shell' }],
    ...['', '.', '..', '-x', 'a/b', '../x', 'a b', 'a\n', 'x\0', 'ü', 'x'.repeat(65), 7, null, [], {}].map(
      (name): [string, string, object] => ['', 'project_id', { project_id: name, runtime_type: 'shell' }],
    ),
    ...['', '../x', 'a/b', 5, false].map((name): [string, string, object] => [
      '',
      'user_id',
      { project_id: 'p', runtime_type: 'shell', user_id: name },
    ]),
    ['', 'runtime_type', { project_id: 'p' }],
    ['', 'runtime_type', { project_id: 'p', runtime_type: 'ruby' }],
    ['', 'runtime_type', { project_id: 'p', runtime_type: ['shell'] }],
    ...OF_SESSIONS.map(([field, more]): [string, string, object] => [
      '',
      field,
      { project_id: 'p', runtime_type: 'shell', ...more },
    ]),
    ...[
      '*',
      '*.*',
      'com',
      '1.2.3.4',
      '127.0.0.1',
      '[::1]',
      'http://example.org',
      'a b.org',
      'example.org/x',
      5,
    ].flatMap((host): [string, string, object][] => [
      ['', 'network', { project_id: 'p', runtime_type: 'shell', network: [host] }],
      ['/egress', 'allow', { allow: [host] }],
    ]),
    ['/exec', 'command', {}],
    ['/exec', 'command', { command: '' }],
    ['/exec', 'command', { command: 'a\0b' }],
    ['/exec', 'command', { command: ['ls'] }],
    ['/exec', 'command', { command: LONG + LONG }],
    ['/exec', 'timeout_s', { command: 'touch made', timeout_s: 0 }],
    ['/exec', 'timeout_s', { command: 'touch made', timeout_s: -5 }],
    ['/exec', 'timeout_s', { command: 'touch made', timeout_s: '5' }],
    ['/exec', 'cwd', { command: 'touch made', cwd: '' }],
    ['/exec', 'cwd', { command: 'touch made', cwd: 'a\0b' }],
    ['/exec', 'cwd', { command: 'touch made', cwd: LONG }],
    ['/exec', 'env', { command: 'touch made', env: [] }],
    ['/exec', 'env', { command: 'touch made', env: { 'A=B': 'x' } }],
    ['/exec', 'env', { command: 'touch made', env: { '': 'x' } }],
    ['/exec', 'env', { command: 'touch made', env: { A: 5 } }],
    ['/exec', 'env', { command: 'touch made', env: { A: 'x\0y' } }],
    ['/exec', 'on_busy', { command: 'touch made', on_busy: 'never' }],
    ['/exec', 'background', { command: 'touch made', background: 'yes' }],
    ['/exec', 'stdin', { command: 'touch made', stdin: 5 }],
    ['/execs/EXEC/stdin', 'data', { data: 5 }],
    ['/execs/EXEC/stdin', 'data', { data: 'no base64!', encoding: 'base64' }],
    ['/execs/EXEC/stdin', 'encoding', { data: 'x', encoding: 'utf16' }],
    ['/upload', 'files', {}],
    ['/upload', 'files', { files: {} }],
    ['/upload', 'files[0].path', { files: [{ content: 'x' }] }],
    ...['', '/', '/etc/passwd', '..', '../x', 'a/../../x', 'a/..', 'a\0b', './..', LONG].flatMap(
      (path): [string, string, object][] => [
        ['/upload', 'files[0].path', { files: [{ path, content: 'x' }] }],
        ['/sync', 'files[0].path', { files: [{ path, content: 'x' }] }],
      ],
    ),
    ['/upload', 'files[0].content', { files: [{ path: 'made' }] }],
    ['/upload', 'files[0].content', { files: [{ path: 'made', content: '!', encoding: 'base64' }] }],
    ['/upload', 'files[0].mode', { files: [{ path: 'made', content: '', mode: 0o4755 }] }],
    ['/upload', 'files[0].mode', { files: [{ path: 'made', content: '', mode: '4755' }] }],
    ['/upload', 'files', { files: Array.from({ length: 10_001 }, () => 0) }],
    ['/sync', 'files[0].hash', { files: [{ path: 'made' }] }],
    ['/sync', 'files[0].hash', { files: [{ path: 'made', hash: 'abc' }] }],
    ['/sync', 'delete', { files: [], delete: 'all' }],
    ['/apply_patch', 'diff', { diff: '' }],
    ['/apply_patch', 'diff', { diff: 5 }],
  ];
  test('[RS-18] each is refused by its name when it is wrong, and nothing happens', async () => {
    await target.expectUnchanged(async () => {
      for (const [route, field, body] of FIELDS) {
        const path =
          route === ''
            ? '/v1/sessions'
            : `/v1/sessions/${target.hand.id}${route.replace('EXEC', target.exec)}`;
        const refusal = await target.sendJson(route === '/egress' ? 'PUT' : 'POST', path, body);
        const what = `${route} ${JSON.stringify(body).slice(0, 120)}`;
        expectHelpful(refusal, what);
        expect({ what, named: refusal.body.field?.startsWith(field) }).toEqual({ what, named: true });
      }
    });
  });

  test.each([
    ['/execs/EXEC?wait_s=-1', 'wait_s'],
    ['/execs/EXEC?wait_s=601', 'wait_s'],
    ['/execs/EXEC?wait_s=x', 'wait_s'],
    ['/execs/EXEC/output?from=-1', 'from'],
    ['/execs/EXEC/output?from=1e3', 'from'],
    ['/execs/EXEC/output?from=99999999999999999999', 'from'],
    ['/execs/EXEC/output?limit=0', 'limit'],
    ['/execs/EXEC/output?format=xml', 'format'],
    ['/changes?since=', 'since'],
    ['/changes?since=unknown', 'since'],
    ['/changes?since=%00', 'since'],
    ['/fs?path=', 'path'],
    ['/fs?path=%00', 'path'],
    ['/fs?path=..', 'path'],
    ['/fs?path=/etc/passwd', 'path'],
    ['/fs?path=a&path=b', 'path'],
  ])('[RS-18] %s', async (route, field) => {
    const refusal = await target.send(
      'GET',
      `/v1/sessions/${target.hand.id}${route.replace('EXEC', target.exec)}`,
    );
    expectHelpful(refusal, route);
    expect(refusal.body.field).toBe(field);
  });

  test('[RS-18, RS-07] patches that are none, or lead out, change nothing', async () => {
    const patches = [
      'nonsense',
      '--- a/x\n+++ b/x\n',
      '--- a/x\n+++ b/x\n@@ -1 +1 @@\n-one\n+two\n',
      '--- /dev/null\n+++ b/../made\n@@ -0,0 +1 @@\n+x\n',
      '--- /dev/null\n+++ /etc/made\n@@ -0,0 +1 @@\n+x\n',
      '--- /dev/null\n+++ b/made\n@@ -0,0 +1,9999999999 @@\n+x\n',
      '--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+x\n--- a/none\n+++ b/none\n@@ -1 +1 @@\n-a\n+b\n',
    ];
    await target.expectUnchanged(async () => {
      for (const diff of patches)
        expectHelpful(
          await target.sendJson('POST', `/v1/sessions/${target.hand.id}/apply_patch`, { diff }),
          diff,
        );
    });
  });

  test('[RS-04] a terminal needs the handshake of one, and a size that can be', async () => {
    const path = `/v1/sessions/${target.hand.id}/terminal`;
    const upgrade = { connection: 'upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
    await target.expectUnchanged(async () => {
      expectHelpful(await target.send('GET', path), path);
      expectHelpful(await target.send('GET', path, { headers: upgrade }), 'no key');
      const headers = { ...upgrade, 'sec-websocket-key': Buffer.alloc(16).toString('base64') };
      for (const query of [
        '?rows=0',
        '?cols=1001',
        '?rows=x',
        '?exec_id=none',
        '?evil=1',
        `?exec_id=${target.exec}`,
        '?command=',
      ])
        expectHelpful(await target.send('GET', path + query, { headers }), query);
    });
  });
});
