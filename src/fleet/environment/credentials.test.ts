import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { InjectedHeaders } from '../../egress/header-injection.ts';
import { FleetConfig } from '../fleet-config.ts';
import { requireLogin, USUAL_NEED_MS } from './agent-login.ts';
import { collectCredentials, renewCredentials, type CollectedCredentials } from './collect-credentials.ts';
import { encodeCredentials, newCredentialFolder } from './credentials.ts';
import { Secret } from './secret.ts';

const VALUE = 'sk-the-real-one';
let home = '';
let root = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hotcell-home-'));
  root = mkdtempSync(join(tmpdir(), 'hotcell-root-'));
});
afterEach(() => {
  rmSync(home, { recursive: true });
  rmSync(root, { recursive: true });
});

function collect(
  credentials: Record<string, unknown>,
  env: Record<string, string> = {},
): Promise<CollectedCredentials> {
  const wish = FleetConfig.parse({ credentials }).credentials;
  return collectCredentials(wish, { env, home, root });
}

const reveal = ({ variables }: CollectedCredentials): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, value.reveal()]));

describe('a secret', () => {
  test('[FL-08] is printed by nothing but the one who asks for it', () => {
    const secret = new Secret(VALUE);
    const shown = [
      String(secret),
      JSON.stringify({ secret }),
      inspect({ secret }, { showHidden: true, depth: 9 }),
      inspect(secret),
      Object.entries(secret),
    ];
    expect(JSON.stringify(shown)).not.toContain(VALUE);
    expect(String(secret)).toBe('[secret]');
    expect(secret.reveal()).toBe(VALUE);
  });
});

describe('the key of the API', () => {
  test('[FL-08] is taken from the environment first, and given to the agent', async () => {
    writeFileSync(join(root, '.env'), 'ANTHROPIC_API_KEY=sk-other\n');
    const collected = await collect({}, { ANTHROPIC_API_KEY: ` ${VALUE}\n` });
    expect(reveal(collected)).toEqual({ ANTHROPIC_API_KEY: VALUE });
    expect(collected).toMatchObject({
      files: [],
      inject: [],
      withheld: [],
      missing: [],
      found: ['ANTHROPIC_API_KEY from the environment'],
    });
  });

  test('[FL-08] is taken from .env of the repository otherwise', async () => {
    writeFileSync(join(root, '.env'), `# keys\nexport OTHER=1\nANTHROPIC_API_KEY="${VALUE}" # mine\n`);
    const collected = await collect({}, { ANTHROPIC_API_KEY: '' });
    expect(reveal(collected)).toEqual({ ANTHROPIC_API_KEY: VALUE });
    expect(collected.found).toEqual(['ANTHROPIC_API_KEY from .env']);
  });

  test('[FL-08] may have another name', async () => {
    const collected = await collect(
      { api_key_variable: 'MY_KEY' },
      { MY_KEY: VALUE, ANTHROPIC_API_KEY: 'no' },
    );
    expect(reveal(collected)).toEqual({ MY_KEY: VALUE });
  });

  test('[FL-08] stays with the gate when it should', async () => {
    const collected = await collect({ api_key: 'gate' }, { ANTHROPIC_API_KEY: VALUE });
    expect(reveal(collected)).toEqual({
      ANTHROPIC_BASE_URL: 'http://api.anthropic.com',
      ANTHROPIC_API_KEY: 'kept-by-the-gate',
    });
    expect(Buffer.from(encodeCredentials(collected)).toString()).not.toContain(VALUE);
    const to = { host: 'api.anthropic.com', port: 443 };
    expect(new InjectedHeaders(collected.inject).addTo(['x-api-key', 'kept-by-the-gate'], to)).toEqual([
      'x-api-key',
      VALUE,
    ]);
    expect(collected.withheld.map((secret) => secret.reveal())).toEqual([VALUE]);
    expect(JSON.stringify(collected)).not.toContain(VALUE);
    expect(inspect(collected, { depth: 9 })).not.toContain(VALUE);
  });

  test('[FL-08] is a bearer where the header wants one', async () => {
    const collected = await collect(
      { api_key: 'gate', api_header: 'authorization', api_host: 'b.example:8443' },
      { ANTHROPIC_API_KEY: VALUE },
    );
    expect(reveal(collected)['ANTHROPIC_BASE_URL']).toBe('http://b.example:8443');
    expect(new InjectedHeaders(collected.inject).addTo([], { host: 'b.example', port: 8443 })).toEqual([
      'authorization',
      `Bearer ${VALUE}`,
    ]);
  });

  test('[FL-08] is not looked for when none is wanted', async () => {
    const collected = await collect({ api_key: 'none' }, { ANTHROPIC_API_KEY: VALUE });
    expect(collected).toMatchObject({
      variables: {},
      files: [],
      inject: [],
      secrets: [],
      found: [],
      missing: [],
    });
  });

  test.each(['agent', 'gate'])('[FL-08] is missed with a hint, for the %s', async (api_key) => {
    const collected = await collect({ api_key });
    expect(collected).toMatchObject({ variables: {}, inject: [], missing: [{ what: 'ANTHROPIC_API_KEY' }] });
    expect(collected.missing[0]?.hint).toContain('.env of the repository');
  });

  test('[FL-08] is not read through a link, from a large file, or from what can be no key', async () => {
    writeFileSync(join(home, 'elsewhere'), `ANTHROPIC_API_KEY=${VALUE}`);
    symlinkSync(join(home, 'elsewhere'), join(root, '.env'));
    expect((await collect({})).missing[0]?.hint).toContain('it is a link');
    rmSync(join(root, '.env'));
    writeFileSync(join(root, '.env'), `${'#'.repeat(300_000)}\nANTHROPIC_API_KEY=${VALUE}`);
    expect((await collect({})).missing[0]?.hint).toContain('more than');
    const odd = await collect({}, { ANTHROPIC_API_KEY: `${VALUE}\r\nx: y` });
    expect(odd.missing[0]?.hint).toContain('in no key');
    expect([odd.variables, JSON.stringify(odd)]).toEqual([{}, expect.not.stringContaining(VALUE)]);
  });
});

describe('the login of Claude Code', () => {
  const TOKENS = {
    accessToken: VALUE,
    expiresAt: 4_000_000_000_000,
    scopes: ['user:inference'],
    subscriptionType: 'max',
  };
  const login = (change: object = {}): void => {
    mkdirSync(join(home, '.claude'), { recursive: true });
    const oauth = { ...TOKENS, refreshToken: 'the-refresh-token', organization: 'mine', ...change };
    const content = { claudeAiOauth: oauth, mcpOAuth: { server: { accessToken: 'of-another-service' } } };
    writeFileSync(join(home, '.claude/.credentials.json'), JSON.stringify(content));
    writeFileSync(join(home, '.claude.json'), '{"mcpServers":{"x":{"env":{"KEY":"of-another-service"}}}}');
  };

  test('[FL-08] is given away only when asked for, and of it only what signs in: never what refreshes', async () => {
    login();
    expect((await collect({ api_key: 'none' })).files).toEqual([]);
    const collected = await collect({ api_key: 'none', oauth: true });
    expect(
      collected.files.map(({ path, mode, content }) => [path, mode, JSON.parse(content.reveal())]),
    ).toEqual([['.claude/.credentials.json', 0o600, { claudeAiOauth: TOKENS }]]);
    expect(collected.secrets.map((secret) => secret.reveal())).toEqual([VALUE]);
    const sent = Buffer.from(encodeCredentials(collected)).toString();
    expect(sent).toContain(VALUE);
    expect(sent).not.toMatch(/refresh|another-service|mcp/i);
    expect(collected.found).toEqual([
      'the login of ~/.claude/.credentials.json, which ends at 2096-10-02T07:06:40.000Z',
    ]);
    expect(JSON.stringify(collected)).not.toContain(VALUE);
  });

  test('[FL-08] is enough: no key is missed beside it, and none is used', async () => {
    login();
    expect(await collect({ oauth: true })).toMatchObject({ missing: [], variables: {} });
    expect(await collect({ oauth: true }, { ANTHROPIC_API_KEY: 'sk-key' })).toMatchObject({ variables: {} });
  });

  test('[FL-08] is a token that lasts, from the environment, without a word in the configuration', async () => {
    const env = { CLAUDE_CODE_OAUTH_TOKEN: VALUE };
    const collected = await collect({}, env);
    expect(reveal(collected)).toEqual(env);
    expect(collected).toMatchObject({ files: [], missing: [], expiresAt: undefined });
    // The key is what the configuration names; a token beside it is used only by name.
    expect(reveal(await collect({}, { ...env, ANTHROPIC_API_KEY: 'sk-key' }))).toEqual({
      ANTHROPIC_API_KEY: 'sk-key',
    });
    login();
    expect(reveal(await collect({ oauth: true }, { ...env, ANTHROPIC_API_KEY: 'sk-key' }))).toEqual(env);
    expect(reveal(await collect({ api_key: 'none' }, env))).toEqual({});
  });

  test.each([{}, { ANTHROPIC_API_KEY: 'sk-key' }])(
    '[FL-08] that is not there is missed, and no key takes its place: %j',
    async (env) => {
      const { missing, ...rest } = await collect({ oauth: true }, env);
      expect(missing.map(({ what }) => what)).toEqual(['~/.claude/.credentials.json']);
      expect(missing[0]?.hint).toContain('claude setup-token');
      expect(rest).toMatchObject({ variables: {}, files: [], inject: [], found: [] });
    },
  );

  test('[FL-08, FL-12] that is gone within a run is told of, and no key takes its place', async () => {
    const wish = FleetConfig.parse({ credentials: { oauth: true } }).credentials;
    const sources = { env: { ANTHROPIC_API_KEY: 'sk-key' }, home, root };
    login();
    const began = await collectCredentials(wish, sources);
    expect(await renewCredentials(began, wish, sources)).toEqual(began);
    rmSync(join(home, '.claude'), { recursive: true });
    await expect(renewCredentials(began, wish, sources)).rejects.toMatchObject({
      code: 'AGENT_SIGNED_OUT',
      message: 'the login of the agent is gone (~/.claude/.credentials.json)',
      hint: expect.stringContaining('claude auth login'),
    });
    login({ accessToken: 'sk-the-next-one' });
    const { secrets } = await renewCredentials(began, wish, sources);
    // None of both is kept: the one that is not used may lie in an `.env` that workers get.
    expect(secrets.map((secret) => secret.reveal())).toEqual(['sk-the-next-one', 'sk-key']);
  });

  test('[FL-08, FL-12] whose token has become a key within a run is told of, too', async () => {
    const wish = FleetConfig.parse({}).credentials;
    const sources = { env: {}, home, root };
    writeFileSync(join(root, '.env'), `CLAUDE_CODE_OAUTH_TOKEN=${VALUE}`);
    const began = await collectCredentials(wish, sources);
    expect(began.login).toBe('CLAUDE_CODE_OAUTH_TOKEN');
    writeFileSync(join(root, '.env'), 'ANTHROPIC_API_KEY=sk-key');
    await expect(renewCredentials(began, wish, sources)).rejects.toMatchObject({ code: 'AGENT_SIGNED_OUT' });
    // Who begins anew has chosen anew.
    expect(reveal(await collectCredentials(wish, sources))).toEqual({ ANTHROPIC_API_KEY: 'sk-key' });
  });

  test('[FL-08] is not read through a link, without bound, or in a form that nobody knows', async () => {
    mkdirSync(join(home, '.claude'));
    const path = join(home, '.claude/.credentials.json');
    writeFileSync(join(root, 'elsewhere'), VALUE);
    symlinkSync(join(root, 'elsewhere'), path);
    const { files, missing } = await collect({ api_key: 'none', oauth: true });
    expect([files, missing[0]?.hint]).toEqual([[], expect.stringContaining('it is a link')]);
    rmSync(path);
    for (const text of ['x'.repeat(4 * 1024 * 1024 + 1), 'no json', '{"claudeAiOauth":{}}', '[]']) {
      writeFileSync(path, text);
      expect((await collect({ api_key: 'none', oauth: true })).files).toEqual([]);
    }
  });

  test('[FL-08] has to last as long as the task', () => {
    const now = Date.parse('2026-01-01T00:00:00Z');
    const need = USUAL_NEED_MS;
    requireLogin(undefined, need, now);
    requireLogin(now + need + 1, need, now);
    for (const [end, words] of [
      [now + need, 'ends at 2026-01-01T00:10:00.000Z, in less than the 10 minutes that it is needed for'],
      [now - 1, 'ended at 2025-12-31T23:59:59.999Z'],
    ] as const)
      expect(() => requireLogin(end, need, now)).toThrow(
        expect.objectContaining({ code: 'AGENT_SIGNED_OUT', message: expect.stringContaining(words) }),
      );
  });
});

describe('what an agent gets on stdin', () => {
  test('[FL-08] is one length and fields', () => {
    const bytes = encodeCredentials({
      variables: { A: new Secret('\u00e4') },
      files: [{ path: 'x/y', mode: 0o400, content: new Secret('12') }],
    });
    const fields = '1\n14\nA=\u00e41\n13\nx/y3\n4002\n12';
    expect(Buffer.from(bytes).toString()).toBe(`${Buffer.byteLength(fields)}\n${fields}`);
  });

  test('[FL-08] goes to a folder that nobody can foresee', () => {
    const names = new Set(Array.from({ length: 100 }, () => newCredentialFolder()));
    expect(names.size).toBe(100);
    expect([...names][0]).toMatch(/^\/tmp\/agent-[0-9a-f]{16}$/);
  });
});
