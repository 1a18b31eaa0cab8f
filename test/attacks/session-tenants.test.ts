import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../support/leftovers.ts';
import { OCI_FRESH } from '../support/served-by.ts';
import { ServedSessions } from '../support/session-site.ts';
import { KEYS, toTenants } from '../support/session-tenants.ts';

const MiB = 1024 * 1024;
const NOBODY = `session_${'0'.repeat(32)}`;

describe('tenants', () => {
  const QUOTAS = { sessions: 3, cpus: 2.5, memoryBytes: 3000 * MiB, diskBytes: 1200 * MiB };
  const VALUE = `value-${crypto.randomUUID()}`;
  const folder = mkdtempSync(join(tmpdir(), 'hotcell-audit-'));
  const file = join(folder, 'audit.log');
  let shared: ServedSessions;
  beforeAll(async () => {
    shared = await ServedSessions.open({
      way: OCI_FRESH,
      keys: KEYS,
      args: [...toTenants(QUOTAS), '--set', `sessions.audit.file=${file}`],
    });
  });
  afterAll(async () => {
    await shared[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  test('[SC-05] without a key, and with a wrong one, there is nothing at all', async () => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: `Basic ${KEYS[0]}` }]) {
      for (const path of ['', `/${NOBODY}`, `/${NOBODY}/exec`]) {
        const response = await fetch(`${shared.server.url}/v1/sessions${path}`, { headers });
        expect(response.status).toBe(401);
      }
    }
  });

  test.each([
    ['CPUs', { limits: { cpus: 2 } }, { limits: { cpus: 1 } }],
    ['memory', { limits: { memory_mb: 2000 } }, { limits: { memory_mb: 1001 } }],
    ['disk', { limits: { disk_mb: 1000 } }, { limits: { disk_mb: 201 } }],
  ])(
    '[SC-05, RS-18] the quota of %s counts all sessions of a tenant together',
    async (what, first, second) => {
      const small = { cpus: 0.5, memory_mb: 64, disk_mb: 16 };
      const door = shared.door(KEYS[0]);
      const withSmall = (request: { limits: object }): object => ({
        limits: { ...small, ...request.limits },
      });
      await using held = await door.create(withSmall(first));
      const refused = await door.ask('POST', '', {
        project_id: 'p',
        runtime_type: 'shell',
        ...withSmall(second),
      });
      expect(refused).toMatchObject({ status: 429, body: { code: 'QUOTA_EXCEEDED' } });
      expect(refused.body.detail).toContain(what);
      // It is nobody else's quota.
      await using other = await shared.door(KEYS[1]).create(withSmall(second));
      expect((await door.list()).map(({ session_id: id }) => id)).toEqual([held.id]);
      await other.expectUsable();
    },
  );

  test('[SC-05, RS-18] the quota of sessions holds for requests at once, and a deleted one makes room', async () => {
    const door = shared.door(KEYS[0]);
    const body = {
      project_id: 'p',
      runtime_type: 'shell',
      limits: { cpus: 0.1, memory_mb: 64, disk_mb: 16 },
    };
    const answers = await Promise.all(Array.from({ length: 6 }, () => door.ask('POST', '', body)));
    expect(answers.map(({ status }) => status).toSorted((one, other) => one - other)).toEqual([
      201, 201, 201, 429, 429, 429,
    ]);
    const [first, ...rest] = await door.list();
    await door.get('DELETE', `/${first?.session_id ?? ''}`);
    expect((await door.ask('POST', '', body)).status).toBe(201);
    expect(rest).toHaveLength(2);
    for (const { session_id: id } of await door.list()) await door.get('DELETE', `/${id}`);
  });

  test('[SC-05, RS-18] who ran what when is written down, without values of variables and without ids', async () => {
    const session = await shared.door(KEYS[0]).create({ project_id: 'audited', user_id: 'alice' });
    await session.print('true', { env: { TOKEN: VALUE }, stdin: VALUE });
    await session.get('POST', '/upload', { files: [{ path: '.env', content: `A=${VALUE}` }] });
    expect(
      await session.ask('POST', '/exec', { command: 'curl example.org', env: { TOKEN: VALUE } }),
    ).toMatchObject({
      status: 403,
    });
    await session.remove();
    const read = (): Record<string, unknown>[] =>
      readFileSync(file, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ project }) => project === 'audited');
    await waitFor('all is written', () => read().some(({ action }) => action === 'session.delete'));
    const lines = read();
    expect(lines.map(({ action, outcome }) => `${String(action)} ${String(outcome)}`)).toEqual([
      'session.create ok',
      'exec.start ok',
      'exec.end exit 0',
      'files.write ok',
      expect.stringMatching(/^refused COMMAND_REFUSED /),
      'session.delete deleted',
    ]);
    for (const line of lines) expect(line).toMatchObject({ tenant: 'first', user: 'alice' });
    expect(lines[1]).toMatchObject({ command: 'true', variables: ['TOKEN'] });
    const all = readFileSync(file, 'utf8') + shared.server.output;
    for (const secret of [VALUE, session.id, ...KEYS]) expect(all).not.toContain(secret);
  });
});

test('[RS-18] each user of each project may ask so often, and is told when to come again', async () => {
  const args = ['--set', 'sessions.rateLimit.perMinute=60', '--set', 'sessions.rateLimit.burst=20'];
  await using limited = await ServedSessions.open({ way: OCI_FRESH, args, limitRate: true });
  const door = limited.door();
  const session = await door.create({ project_id: 'busy', user_id: 'alice' });
  const answers = await Promise.all(Array.from({ length: 40 }, () => session.ask('GET', '')));
  const refused = answers.filter(({ status }) => status !== 200);
  expect(answers.length - refused.length).toBeLessThanOrEqual(25);
  expect(refused.length).toBeGreaterThan(10);
  for (const { status, body, headers } of refused) {
    expect({ status, code: body.code }).toEqual({ status: 429, code: 'RATE_LIMITED' });
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }
  // Another user and another project are not hindered.
  await door.create({ project_id: 'busy', user_id: 'bob' });
  await door.create({ project_id: 'idle', user_id: 'alice' });
  await waitFor('it may ask again', async () => (await session.ask('GET', '')).status === 200);
});
