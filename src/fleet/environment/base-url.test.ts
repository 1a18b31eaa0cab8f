import { isIP } from 'node:net';
import { expect, test } from 'vitest';
import { SILENT_LOG } from '../../core/log.ts';
import { EgressGate } from '../../egress/gate.ts';
import { FleetConfig } from '../fleet-config.ts';
import { checkBaseUrl } from './base-url.ts';
import { Secret } from './secret.ts';

const ADDRESSES: Readonly<Record<string, string[]>> = {
  'gw.corp': ['10.1.2.3'],
  'loop.corp': ['127.0.0.1'],
  'six.corp': ['fd00::7'],
  'api.example': ['203.0.113.7'],
};

interface Case {
  readonly url: string;
  readonly allow?: string[];
  readonly permit?: string[];
  readonly command?: string;
  readonly from?: 'caller' | 'agent.env' | 'credentials';
  readonly isPlain?: boolean;
}

function check({ url, allow = [], permit = [], command = 'claude', from = 'caller', isPlain }: Case) {
  const gate = new EgressGate({
    presets: { npm: { hosts: ['npm.corp'] }, pypi: { hosts: [] }, github: { hosts: [] } },
    lookup: (host) => Promise.resolve(ADDRESSES[host] ?? (isIP(host) === 0 ? [] : [host])),
    log: SILENT_LOG,
    permit,
  });
  const variables = { ANTHROPIC_BASE_URL: url };
  return checkBaseUrl({
    site: { whyNotReached: isPlain === true ? undefined : (list, to) => gate.whyNot(list, to) },
    config: FleetConfig.parse({
      agent: { command, env: from === 'agent.env' ? variables : {} },
      network: { allow },
    }),
    credentials: { variables: from === 'credentials' ? { ANTHROPIC_BASE_URL: new Secret(url) } : {} },
    variables: from === 'caller' ? variables : { ANTHROPIC_BASE_URL: 'https://api.example' },
  });
}

const toPattern = (hint: string | RegExp): RegExp =>
  typeof hint === 'string' ? new RegExp(hint.replaceAll(/[[\].:]/g, String.raw`\$&`)) : hint;

test.each([
  [{ url: 'https://api.example', allow: ['api.example'] }],
  [{ url: 'https://api.example:443/v1', allow: ['*.example', 'api.example'] }],
  [{ url: 'http://gw.corp:8080', allow: ['gw.corp:8080'], permit: ['10.0.0.0/8'] }],
  [{ url: 'http://six.corp', allow: ['six.corp'], permit: ['fd00::7/128'] }],
  [{ url: 'https://npm.corp/anthropic', allow: ['npm'], permit: [] }],
  [{ url: 'http://gw.corp:8080', isPlain: true }],
  [{ url: '' }],
] satisfies [Case][])('[FL-08] a base URL that workers can reach is no problem: %j', async (one) => {
  expect((await check(one)).filter((text) => !text.includes('no address here'))).toEqual([]);
});

test.each([
  [
    { url: 'http://gw.corp:8080' },
    'network.allow has no gw.corp:8080',
    ['Add gw.corp:8080 to network.allow in .mahabharatha/config.yaml', 'permit: ["10.1.2.3/32"]'],
  ],
  [
    { url: 'http://gw.corp:8080', permit: ['10.0.0.0/8'] },
    'network.allow has no gw.corp:8080',
    [/^Add gw.corp:8080 to network.allow in [^ ]+$/],
  ],
  [
    { url: 'https://api.example' },
    'network.allow has no api.example',
    [/^Add api.example to [^ ]+ in [^ ]+$/],
  ],
  [
    { url: 'http://gw.corp:8080', allow: ['gw.corp'] },
    'network.allow has no gw.corp:8080',
    ['Add gw.corp:8080', 'permit: ["10.1.2.3/32"]'],
  ],
  [
    { url: 'http://gw.corp:8080', allow: ['gw.corp:8080'] },
    'to its address 10.1.2.3, which is not of the public internet',
    [
      'sessions.egress.permit: ["10.1.2.3/32"] in hotcell.yaml, or HOTCELL_SESSIONS_EGRESS_PERMIT=10.1.2.3/32',
    ],
  ],
  [{ url: 'https://loop.corp', allow: ['loop.corp'] }, 'address 127.0.0.1,', ['permit: ["127.0.0.1/32"]']],
  [{ url: 'https://six.corp', allow: ['six.corp'] }, 'address fd00::7,', ['permit: ["fd00::7/128"]']],
  [
    { url: 'https://10.1.2.3/v1', allow: ['10.1.2.3'] },
    'the gate knows names only',
    [
      'use https://gateway.internal in its place',
      'Add gateway.internal to network.allow',
      'permit: ["10.1.2.3/32"]',
    ],
  ],
  [
    { url: 'http://10.1.2.3:8080', permit: ['10.0.0.0/8'] },
    'the gate knows names only',
    [/Add gateway.internal:8080 to network.allow in [^ ]+$/],
  ],
  // What a resolver would take for an address is one.
  [{ url: 'http://0x7f.1:8080' }, 'the gate knows names only', ['permit: ["127.0.0.1/32"]']],
  [{ url: 'https://203.0.113.7' }, 'the gate knows names only', [/network.allow in [^ ]+$/]],
  [
    { url: 'http://[::1]:8080' },
    'the gate knows names only',
    ['gateway.internal:8080', 'permit: ["::1/128"]'],
  ],
  [
    { url: 'http://localhost:8080' },
    'in a cell is the cell itself',
    ['/etc/hosts', 'Add gateway.internal:8080 to network.allow', 'permit: ["127.0.0.1/32"]'],
  ],
  [{ url: 'file:///etc' }, 'ANTHROPIC_BASE_URL is no URL of http or https', ['Correct it']],
] satisfies [Case, string, (string | RegExp)[]][])(
  '[FL-08] one that they cannot reach is refused with every setting to change: %j',
  async (one, text, hints) => {
    for (const from of ['caller', 'agent.env', 'credentials'] as const)
      for (const hint of hints)
        await expect(check({ ...one, from })).rejects.toMatchObject({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(text),
          hint: expect.stringMatching(toPattern(hint)),
        });
    // Who knows whether another agent looks at it.
    expect(await check({ ...one, command: 'my-agent' })).toEqual([expect.stringContaining(text)]);
    await expect(check({ ...one, command: 'my-agent', from: 'agent.env' })).rejects.toThrow(text);
  },
);

test('[FL-08] a password in it is not said, and a name may have an address later', async () => {
  await expect(check({ url: 'https://me:secret@gw.corp/' })).rejects.not.toThrow('secret');
  expect(await check({ url: 'https://new.corp', allow: ['new.corp'] })).toEqual([
    expect.stringContaining('ANTHROPIC_BASE_URL is https://new.corp, which cannot be reached: '),
  ]);
});
