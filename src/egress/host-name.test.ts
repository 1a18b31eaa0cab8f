import { describe, expect, test } from 'vitest';
import { canonicalHost, parseAuthority } from './host-name.ts';

describe('a host name', () => {
  test.each([
    ['example.org', 'example.org'],
    ['EXAMPLE.Org', 'example.org'],
    ['example.org.', 'example.org'],
    ['_dmarc.example.org', '_dmarc.example.org'],
    ['xn--bcher-kva.example', 'xn--bcher-kva.example'],
    ['localhost', 'localhost'],
    ['1and1.example', '1and1.example'],
    ['a.0x7g', 'a.0x7g'],
  ])('[RS-15] %s is %s', (text, host) => {
    expect(canonicalHost(text)).toBe(host);
  });

  test.each([
    '',
    '.',
    '..',
    'example..org',
    '.example.org',
    'example.org..',
    '-example.org',
    'example-.org',
    'evil\0.example.org',
    'evil.org\n.example.org',
    'exa mple.org',
    'user@example.org',
    'example.org/path',
    'example.org#x',
    'bücher.example',
    'ｅxample.org',
    '*.example.org',
    `${'a'.repeat(64)}.org`,
    `${'a.'.repeat(126)}org`,
  ])('[RS-15] is not %j', (text) => {
    expect(canonicalHost(text)).toBeUndefined();
    expect(parseAuthority(text, 443)).toMatchObject({ refused: { code: 'malformed' } });
  });
});

describe('an address instead of a name', () => {
  test.each([
    '127.0.0.1',
    '127.0.0.1.',
    '169.254.169.254',
    '8.8.8.8',
    '127.1',
    '2130706433',
    '0',
    '017700000001',
    '0x7f000001',
    '0X7F.1',
    '0x7f.0.0.0x1',
    '0177.0.0.1',
    '1.2.3.4.5',
    'example.123',
    '999.999.999.999',
    '0x',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[fe80::1%25eth0]',
    '::1',
    'fe80::1%eth0',
    '[',
  ])('[RS-15] %s is refused, with and without a port', (address) => {
    expect(parseAuthority(address, 443)).toMatchObject({ refused: { code: 'ip_literal' } });
    expect(parseAuthority(`${address}:443`, 443)).toMatchObject({ refused: { code: 'ip_literal' } });
  });
});

describe('an authority', () => {
  test('[RS-15] has the port that is usual unless it says another', () => {
    expect(parseAuthority('Example.org.', 80)).toEqual({ to: { host: 'example.org', port: 80 } });
    expect(parseAuthority('example.org:', 80)).toEqual({ to: { host: 'example.org', port: 80 } });
    expect(parseAuthority('example.org:8443', 443)).toEqual({ to: { host: 'example.org', port: 8443 } });
  });

  test.each(['example.org:0', 'example.org:65536', 'example.org:99999'])(
    '[RS-15] is refused with a port that is none: %s',
    (text) => {
      expect(parseAuthority(text, 443)).toMatchObject({ refused: { code: 'malformed' } });
    },
  );

  test.each(['example.org:443x', 'example.org:-1', 'example.org: 443', 'a:b@example.org:443'])(
    '[RS-15] is refused when it is none: %s',
    (text) => {
      expect(parseAuthority(text, 443)).toHaveProperty('refused');
    },
  );
});
