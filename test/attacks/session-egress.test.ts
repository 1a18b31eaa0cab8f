import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EgressReply } from '../../src/wire/egress.ts';
import type { OutputReply } from '../../src/wire/session-exec.ts';
import { waitFor } from '../support/leftovers.ts';
import { FRESH_WAYS, OCI_FRESH, describeEach, describeOnce } from '../support/served-by.ts';
import type { Hand } from '../support/session-door.ts';
import { ServedSessions } from '../support/session-site.ts';

/** Where this machine gets packages from, and whom it trusts: mirrors count, so no host stands here. */
const NETWORK_VARIABLES =
  /^(?:HOME|SSL_CERT_(?:FILE|DIR)|NODE_EXTRA_CA_CERTS|npm_config_registry|PIP_INDEX_URL)$/i;
const env = Object.fromEntries(
  Object.entries(process.env).flatMap(([name, value]) =>
    value !== undefined && NETWORK_VARIABLES.test(name) ? [[name, value]] : [],
  ),
);
const REGISTRY = new URL(execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim());
const PACKAGE = 'ms';

/** Says this to the gate and prints what it answers. */
const say = (text: string): string =>
  `exec 3<>/dev/tcp/127.0.0.1/3128; printf '${text.replaceAll('\r\n', '\\r\\n')}' >&3; timeout 10 cat <&3`;
const tunnelTo = (authority: string): string => say(`CONNECT ${authority} HTTP/1.1\r\nHost: x\r\n\r\n`);
const fetchFrom = (url: string, headers = ''): string =>
  say(`GET ${url} HTTP/1.1\r\nHost: ${/^\w+:\/\/([^/]*)/.exec(url)?.[1] ?? 'x'}\r\n${headers}\r\n`);
/** The gate speaks TLS for who asks it to. */
const OVER_TLS = 'hotcell-scheme: https\r\n';

/** Speaks TLS through a tunnel, to whomever it names, and tells of its end. */
const HOLD = `import os, socket, ssl, sys
host, name = sys.argv[1:]
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(f'CONNECT {host}:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
print(s.recv(4096).split(b'\\r\\n')[0].decode(), flush=True)
context = ssl.create_default_context(cafile=os.environ.get('SSL_CERT_FILE'))
context.check_hostname = False
try:
    s = context.wrap_socket(s, server_hostname=name)
    print('open', flush=True)
    print('closed', s.recv(1), flush=True)
except OSError as error:
    print('failed', flush=True)
`;

/** What a refusal must say; whatever is not given may be anything. */
interface Told {
  readonly code?: string | undefined;
  readonly host?: string | undefined;
}
const A_WORD: unknown = expect.any(String);

describeEach(FRESH_WAYS, (way) => {
  let served: ServedSessions;
  let hand: Hand;
  beforeAll(async () => {
    served = await ServedSessions.open({ way, env });
    hand = await served.door().create({ runtime_type: 'node', network: ['npm'] });
  });
  afterAll(() => served[Symbol.asyncDispose]());

  /** Fails unless it was refused for this reason, and everybody is told who should be. */
  async function expectRefused(command: string, told: Told): Promise<void> {
    const refusal = { code: told.code ?? A_WORD, host: told.host ?? A_WORD };
    const before = await hand.egress();
    const reply = await hand.exec(command);
    expect(reply.stdout).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(reply.egress_refused).toEqual([expect.objectContaining(refusal)]);
    expect(reply.egress_refused[0]?.reason).toMatch(/\w/);
    const after = await hand.egress();
    expect(after.refused_count).toBe(before.refused_count + 1);
    expect(after.allowed_count).toBe(before.allowed_count);
    expect(after.refusals.at(-1)).toMatchObject(refusal);
  }

  test('[RS-15] the preset stands for the registry of this machine, and its packages can be fetched', async () => {
    expect(hand.made.network).toContain(REGISTRY.hostname);
    const script = `const reply = await fetch('${REGISTRY.href}${PACKAGE}'); console.log(reply.status, (await reply.json()).name)`;
    const reply = await hand.exec(`node --input-type=module -e "${script}"`);
    expect(reply).toMatchObject({ stdout: `200 ${PACKAGE}\n`, egress_refused: [] });
    expect((await hand.egress()).allowed_count).toBeGreaterThan(0);
  });

  test.each([
    ['example.org:443', 'not_allowed', 'example.org'],
    [`${REGISTRY.hostname}.example.org:443`, 'not_allowed', `${REGISTRY.hostname}.example.org`],
    [`evil-${REGISTRY.hostname}:443`, 'not_allowed', undefined],
    [`x.${REGISTRY.hostname}:443`, 'not_allowed', undefined],
    ['localhost:443', 'not_allowed', 'localhost'],
    ['localhost.:443', 'not_allowed', undefined],
    ['metadata.google.internal:443', 'not_allowed', undefined],
    ['1.1.1.1:443', 'ip_literal', '1.1.1.1'],
    ['127.0.0.1:443', 'ip_literal', undefined],
    ['127.1:443', 'ip_literal', undefined],
    ['2130706433:443', 'ip_literal', undefined],
    ['0x7f000001:443', 'ip_literal', undefined],
    ['0x7f.0.0.1:443', 'ip_literal', undefined],
    ['0177.0.0.1:443', 'ip_literal', undefined],
    ['0:443', 'ip_literal', undefined],
    ['127.0.0.1.:443', 'ip_literal', undefined],
    ['169.254.169.254:443', 'ip_literal', undefined],
    ['[::1]:443', 'ip_literal', undefined],
    ['[::ffff:169.254.169.254]:443', 'ip_literal', undefined],
    ['[2606:4700:4700::1111]:443', 'ip_literal', undefined],
    [`${REGISTRY.hostname}:22`, 'port', undefined],
    [`${REGISTRY.hostname}:0`, undefined, undefined],
    [`user@${REGISTRY.hostname}:443`, undefined, undefined],
    [`${REGISTRY.hostname}%00.example.org:443`, undefined, undefined],
  ])('[RS-15] no tunnel to %s', async (authority, code, host) => {
    await expectRefused(tunnelTo(authority), { code, host });
  });

  test.each([
    ['http://example.org/', 'not_allowed'],
    ['http://169.254.169.254/latest/meta-data/', 'ip_literal'],
    ['http://[::1]/', 'ip_literal'],
    ['http://localhost/', 'not_allowed'],
    [`http://example.org@169.254.169.254/`, undefined],
    ['ftp://example.org/', undefined],
    ['/', undefined],
  ])('[RS-15] nothing from %s', async (url, code) => {
    await expectRefused(fetchFrom(url), { code });
  });

  test('[RS-15] the gate speaks TLS for a program, with hosts on the list and nobody else', async () => {
    const reply = await hand.exec(
      `${fetchFrom(`http://${REGISTRY.host}/${PACKAGE}`, OVER_TLS)} | head -c 100`,
    );
    expect(reply).toMatchObject({ stdout: expect.stringMatching(/^HTTP\/1\.1 200 /), egress_refused: [] });
    await expectRefused(fetchFrom('http://example.org/', OVER_TLS), { code: 'not_allowed' });
    await expectRefused(fetchFrom('http://169.254.169.254/', OVER_TLS), { code: 'ip_literal' });
    await expectRefused(fetchFrom(`http://${REGISTRY.host}/`, OVER_TLS + OVER_TLS), { code: 'malformed' });
    const { refusals } = await hand.egress();
    expect(refusals.find(({ scheme }) => scheme === 'https')).toMatchObject({
      port: 443,
      method: 'GET',
      path: '/',
    });
  });

  test('[RS-15] what is no HTTP at all is refused', async () => {
    await expectRefused(say('\u0016\u0003\u0001garbage\r\n\r\n'), { code: 'malformed' });
  });

  test('[RS-15] refusals are in the log of the server', async () => {
    const marker = `m${crypto.randomUUID().slice(0, 8)}.example.org`;
    await expectRefused(tunnelTo(`${marker}:443`), { code: 'not_allowed', host: marker });
    await waitFor('the log tells of it', () => served.server.output.includes(marker));
  });

  test('[RS-15] beside the gate there is no way: no route, no names, no raw packets', async () => {
    for (const address of ['1.1.1.1/443', '169.254.169.254/80', '::1/80'])
      expect((await hand.exec(`timeout 5 bash -c 'exec 3<>/dev/tcp/${address}'`)).exit_code).toBe(1);
    expect((await hand.exec(`timeout 20 getent hosts ${REGISTRY.hostname}`)).stdout).toBe('');
    const attempts = `use Socket; my $to = sockaddr_in(53, inet_aton("1.1.1.1"));
socket U, PF_INET, SOCK_DGRAM, 0; print send(U, "x", 0, $to) ? "sent" : "no", "\\n";
print socket(R, PF_INET, SOCK_RAW, 1) ? "raw" : "no", "\\n"; print socket(P, 17, SOCK_RAW, 768) ? "packet" : "no", "\\n"`;
    expect(await hand.print(`perl -e '${attempts}'`)).toBe('no\nno\nno\n');
    // Only the relay listens, and only on this cell's own loopback.
    const listening = await hand.print('awk \'$4 == "0A" { print $2 }\' /proc/net/tcp /proc/net/tcp6');
    expect(listening).toBe('0100007F:0C38\n');
  });

  test('[RS-15] a relay that is killed is there again, and no less strict', async () => {
    await hand.exec('pkill -9 -f "[h]otcell/guest/egress"');
    const connects = async (): Promise<boolean> => (await hand.exec('exec 3<>/dev/tcp/127.0.0.1/3128')).ok;
    await waitFor('the relay is back', connects);
    await expectRefused(tunnelTo('example.org:443'), { code: 'not_allowed' });
  });
});

describeOnce('with the programs of this machine', () => {
  let served: ServedSessions;
  let hand: Hand;
  beforeAll(async () => {
    served = await ServedSessions.open({ way: OCI_FRESH, env });
    hand = await served.door().create({ runtime_type: 'node', network: ['npm', 'pypi'] });
    await hand.get('POST', '/upload', { files: [{ path: 'hold.py', content: HOLD }] });
  });
  afterAll(async () => {
    // Otherwise they would be kept for the next session of the project.
    await hand.exec('rm -rf "$HOME"/.npm "$HOME"/.cache node_modules');
    await served[Symbol.asyncDispose]();
  });

  /** Waits until a command has printed this. */
  async function prints(exec: string, text: string): Promise<void> {
    const look = (): Promise<OutputReply> => hand.get<OutputReply>('GET', `/execs/${exec}/output`);
    await waitFor(`it prints ${text}`, async () =>
      (await look()).chunks.some(({ data }) => data.includes(text)),
    );
  }

  test('[RS-15] npm install works as it is', async () => {
    const reply = await hand.exec(
      `npm install --no-update-notifier ${PACKAGE} && node -p 'require("${PACKAGE}")(60000)'`,
    );
    expect(reply).toMatchObject({ exit_code: 0, egress_refused: [] });
    expect(reply.stdout).toMatch(/^1m$/m);
  });

  test('[RS-15] pip reaches its index', async () => {
    const before = (await hand.egress()).allowed_count;
    const reply = await hand.exec(
      'python3 -m pip download --no-deps --no-cache-dir --disable-pip-version-check six',
    );
    // Whether the index can be reached from this machine is not up to us; whether we let it pass is.
    expect(reply.egress_refused.filter(({ code }) => code !== 'unresolvable')).toEqual([]);
    expect((await hand.egress()).allowed_count).toBeGreaterThan(before);
    expect([0, 1]).toContain(reply.exit_code);
  });

  test('[RS-15] who names another server in the greeting than in the request is cut off', async () => {
    const reply = await hand.exec(`python3 hold.py ${REGISTRY.hostname} example.org`);
    expect(reply.stdout).not.toContain('open');
    expect(reply.egress_refused).toEqual([expect.objectContaining({ code: 'sni_mismatch' })]);
  });

  test('[RS-15] a list that is changed holds at once, also for connections that are open', async () => {
    const holder = await hand.begin(`python3 hold.py ${REGISTRY.hostname} ${REGISTRY.hostname}`);
    await prints(holder, 'open');
    const changed = await hand.get<EgressReply>('PUT', '/egress', { allow: ['pypi'] });
    expect(changed.hosts).not.toContain(REGISTRY.hostname);
    await hand.result(holder);
    expect((await hand.exec(tunnelTo(`${REGISTRY.hostname}:443`))).egress_refused).toEqual([
      expect.objectContaining({ code: 'not_allowed', host: REGISTRY.hostname }),
    ]);
    await served.restart();
    expect((await hand.egress()).hosts).not.toContain(REGISTRY.hostname);
    await hand.get('PUT', '/egress', { allow: ['npm'] });
    const again = await hand.begin(`python3 hold.py ${REGISTRY.hostname} ${REGISTRY.hostname}`);
    await prints(again, 'open');
    await hand.get('POST', `/execs/${again}/kill`);
    await hand.result(again);
  });

  test('[RS-15] a name on the list that leads to an address which nobody may reach is refused', async () => {
    const args = ['--set', 'sessions.egress.refuse=0.0.0.0/0,::/0'];
    await using strict = await ServedSessions.open({ way: OCI_FRESH, env, args });
    const session = await strict.door().create({ network: ['npm'] });
    const reply = await session.exec(tunnelTo(`${REGISTRY.hostname}:443`));
    expect(reply.egress_refused).toEqual([
      expect.objectContaining({ code: 'private_address', host: REGISTRY.hostname }),
    ]);
  });
});
