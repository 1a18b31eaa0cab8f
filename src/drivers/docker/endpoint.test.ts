import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HotcellError } from '../../core/errors.ts';
import { findEndpoint, type Endpoint, type EndpointSettings } from './endpoint.ts';
import { pickSocket, usualSockets } from './usual-sockets.ts';

let home = '';
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'hotcell-endpoint-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const idOf = (name: string): string => createHash('sha256').update(name).digest('hex');

function write(path: string, content: string | object): void {
  const file = join(home, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
}

/** A context as `docker context create` leaves it. */
function writeContext(name: string, docker: object): void {
  write(`.docker/contexts/meta/${idOf(name)}/meta.json`, {
    Name: name,
    Metadata: { Description: 'for a test' },
    Endpoints: { docker },
  });
}

function find(settings: EndpointSettings = {}): Endpoint {
  return findEndpoint({ HOME: home, ...settings });
}

function refusalOf(settings: EndpointSettings): HotcellError {
  try {
    find(settings);
  } catch (error) {
    if (error instanceof HotcellError && error.code === 'CONFIG_INVALID') return error;
    throw error;
  }
  throw new Error('it was not refused');
}

const brief = ({ origin, label }: Endpoint): string => `${origin}: ${label}`;

describe('the order', () => {
  beforeEach(() => {
    writeContext('named', { Host: 'unix:///named.sock' });
    writeContext('current', { Host: 'unix:///current.sock', SkipTLSVerify: false });
    write('.docker/config.json', { auths: {}, currentContext: 'current' });
  });
  const all = {
    host: 'unix:///own.sock',
    DOCKER_HOST: 'unix:///env.sock',
    DOCKER_CONTEXT: 'named',
  };

  test('the own setting comes first', () => {
    expect(brief(find(all))).toBe('docker.host: unix:///own.sock');
  });

  test('then DOCKER_HOST, which wins over contexts', () => {
    expect(brief(find({ ...all, host: '' }))).toBe('DOCKER_HOST: unix:///env.sock');
  });

  test('then DOCKER_CONTEXT', () => {
    expect(brief(find({ DOCKER_HOST: '', DOCKER_CONTEXT: 'named' }))).toBe(
      'Docker context named: unix:///named.sock',
    );
  });

  test('then the context that was chosen with docker context use', () => {
    expect(brief(find({ DOCKER_CONTEXT: '' }))).toBe('Docker context current: unix:///current.sock');
  });

  test('DOCKER_CONFIG names another folder for contexts', () => {
    write('elsewhere/config.json', { currentContext: '' });
    expect(find({ DOCKER_CONFIG: join(home, 'elsewhere') }).origin).toBe('the usual socket');
  });

  test('the context "default" is none, whoever names it', () => {
    expect(find({ DOCKER_CONTEXT: 'default' }).origin).toBe('the usual socket');
    write('.docker/config.json', { currentContext: 'default' });
    expect(find().origin).toBe('the usual socket');
  });

  test('without HOME there is no chosen context', () => {
    expect(findEndpoint({}).origin).toBe('the usual socket');
  });
});

describe('the usual sockets', () => {
  test('Docker comes before its relatives, and Podman last', () => {
    expect(usualSockets({ HOME: '/home/x', XDG_RUNTIME_DIR: '/run/user/7', uid: 8 })).toEqual([
      '/var/run/docker.sock',
      '/home/x/.docker/run/docker.sock',
      '/home/x/.colima/default/docker.sock',
      '/home/x/.rd/docker.sock',
      '/run/user/7/docker.sock',
      '/run/podman/podman.sock',
      '/run/user/7/podman/podman.sock',
    ]);
  });

  test('the session is known by the user id if nothing else says', () => {
    expect(usualSockets({ HOME: '', XDG_RUNTIME_DIR: '', uid: 8 })).toEqual([
      '/var/run/docker.sock',
      '/run/user/8/docker.sock',
      '/run/podman/podman.sock',
      '/run/user/8/podman/podman.sock',
    ]);
  });

  test('the first that is a socket is taken; a file and a dead link are not', async () => {
    const [file, link, socket] = ['file', 'link', 'socket'].map((name) => join(home, name)) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, '');
    symlinkSync(join(home, 'nowhere'), link);
    const server = createServer().listen(socket);
    await once(server, 'listening');
    try {
      const alias = join(home, 'alias');
      symlinkSync(socket, alias);
      expect(pickSocket([file, link, join(home, 'missing'), alias, socket])).toBe(alias);
    } finally {
      server.close();
    }
  });

  test("if there is none, Docker's own is named", () => {
    expect(pickSocket([join(home, 'missing')])).toBe('/var/run/docker.sock');
  });
});

describe('addresses', () => {
  test.each([
    ['unix:///run/x.sock', 'unix:///run/x.sock', true],
    ['unix://', 'unix:///var/run/docker.sock', true],
    ['tcp://10.0.0.5', 'tcp://10.0.0.5:2375', false],
    ['tcp://10.0.0.5:2376', 'tcp://10.0.0.5:2376', false],
    ['tcp://', 'tcp://localhost:2375', true],
    [' TCP://:99 ', 'tcp://localhost:99', true],
    ['engine.example:80', 'tcp://engine.example:80', false],
    ['http://engine.example:80/', 'http://engine.example:80', false],
    ['http://127.9.9.9', 'http://127.9.9.9:2375', true],
    ['https://engine.example', 'https://engine.example:2376', false],
    ['https://engine.example:443', 'https://engine.example:443', false],
    ['tcp://[::1]:5', 'tcp://[::1]:5', true],
    ['tcp://[fe80::1]', 'tcp://[fe80::1]:2375', false],
    ['tcp://localhost', 'tcp://localhost:2375', true],
    ['tcp://a.localhost', 'tcp://a.localhost:2375', true],
    ['tcp://localhost.example', 'tcp://localhost.example:2375', false],
    ['tcp://127.0.0.1.example', 'tcp://127.0.0.1.example:2375', false],
  ])('%s', (host, label, local) => {
    expect(find({ host })).toMatchObject({ label, local });
  });

  test('a port that means TLS to others does not switch it on', () => {
    expect(find({ DOCKER_HOST: 'tcp://h:2376' }).connection).toMatchObject({ protocol: 'http', port: 2376 });
  });

  test.each([
    'unix://relative.sock',
    'tcp://h:0',
    'tcp://h:65536',
    'tcp://h:port',
    'tcp://h:1/path',
    'tcp://user:secret@h:1',
    'tcp://::1:5',
    '/var/run/docker.sock',
    'fd://3',
    'ftp://h',
  ])('%s is refused', (host) => {
    const error = refusalOf({ DOCKER_HOST: host });
    expect(error).toMatchObject({ field: 'DOCKER_HOST' });
    expect(error.message).not.toContain('secret');
    expect(error.hint).toContain('unix:///var/run/docker.sock');
  });

  test('ssh is refused, with a way that verifies the host', () => {
    const error = refusalOf({ host: 'ssh://me@there' });
    expect(error.message).toContain('key of the host');
    expect(error.hint).toContain('ssh -NL');
  });

  test('a pipe of Windows is refused', () => {
    expect(refusalOf({ host: 'npipe:////./pipe/docker_engine' }).message).toContain('Windows');
  });
});

describe('TLS in the environment', () => {
  test('asked for without a certificate authority, it is refused', () => {
    const error = refusalOf({ DOCKER_HOST: 'tcp://h', DOCKER_TLS_VERIFY: '1' });
    expect(error.message).toContain(`no ca.pem in ${join(home, '.docker')}`);
    expect(error.hint).toContain('DOCKER_CERT_PATH');
  });

  test('half a client certificate is refused', () => {
    write('certs/cert.pem', 'x');
    const settings = { DOCKER_HOST: 'tcp://h', DOCKER_TLS: '1', DOCKER_CERT_PATH: join(home, 'certs') };
    expect(refusalOf(settings).message).toContain('only one');
  });

  test('certificates that are none are refused', () => {
    for (const name of ['ca', 'cert', 'key']) write(`certs/${name}.pem`, 'not a certificate');
    const settings = {
      DOCKER_HOST: 'tcp://h',
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: join(home, 'certs'),
    };
    expect(refusalOf(settings).message).toContain('cannot be used');
  });

  test('http:// and a wish for TLS contradict each other', () => {
    const error = refusalOf({ DOCKER_HOST: 'http://h', DOCKER_TLS: '1' });
    expect(error.message).toContain('http://');
    expect(error.message).toContain('DOCKER_TLS');
  });

  test('without verification the label says so', () => {
    expect(find({ DOCKER_HOST: 'tcp://h', DOCKER_TLS: '1' })).toMatchObject({
      label: 'tcp://h:2376 (its certificate is not verified)',
      connection: { protocol: 'https' },
    });
  });

  test('without a host it means the local port for TLS', () => {
    expect(brief(find({ DOCKER_TLS: '1' }))).toContain('tcp://localhost:2376');
  });

  test('a socket does not care for certificates', () => {
    expect(find({ host: 'unix:///x', DOCKER_TLS_VERIFY: '1' }).connection.protocol).toBe('http');
  });

  test('contexts do not care for it', () => {
    writeContext('plain', { Host: 'tcp://h:1' });
    expect(find({ DOCKER_CONTEXT: 'plain', DOCKER_TLS_VERIFY: '1' }).connection.protocol).toBe('http');
  });
});

describe('contexts that cannot be used', () => {
  test('one that does not exist', () => {
    const error = refusalOf({ DOCKER_CONTEXT: '../../etc' });
    expect(error.message).toContain('no Docker context "../../etc"');
    expect(error.hint).toContain('docker context ls');
  });

  test('one that was chosen and then removed', () => {
    write('.docker/config.json', { currentContext: 'gone' });
    expect(refusalOf({}).message).toContain('"gone"');
  });

  test('one without a home', () => {
    expect(() => findEndpoint({ DOCKER_CONTEXT: 'x' })).toThrow('HOME is not set');
  });

  test.each([
    ['no JSON', '{'],
    ['no endpoint', { Name: 'x', Endpoints: {} }],
    ['no host', { Endpoints: { docker: { Host: '' } } }],
    ['a wrong type', { Endpoints: { docker: { Host: 'tcp://h', SkipTLSVerify: 'yes' } } }],
  ])('one with %s', (_, content) => {
    const path = `.docker/contexts/meta/${idOf('broken')}/meta.json`;
    write(path, content);
    const error = refusalOf({ DOCKER_CONTEXT: 'broken' });
    expect(error.message).toContain(join(home, path));
    expect(error.hint).toContain('docker context rm broken');
  });

  test('one with an address that is refused', () => {
    writeContext('far', { Host: 'ssh://me@there' });
    expect(refusalOf({ DOCKER_CONTEXT: 'far' })).toMatchObject({ field: 'Docker context far' });
  });

  test('a config.json that cannot be understood is not passed over', () => {
    write('.docker/config.json', 'currentContext: x');
    expect(refusalOf({}).message).toContain('config.json');
    expect(find({ host: 'unix:///x' }).origin).toBe('docker.host');
  });

  test('one that cannot be read is not passed over', () => {
    mkdirSync(join(home, '.docker/config.json'), { recursive: true });
    expect(refusalOf({}).message).toContain('cannot read');
  });
});
