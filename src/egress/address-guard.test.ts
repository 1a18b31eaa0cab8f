import { isIPv6 } from 'node:net';
import { describe, expect, test } from 'vitest';
import { AddressGuard, parseIpv6 } from './address-guard.ts';

const guard = new AddressGuard();

describe('addresses', () => {
  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '127.255.255.255',
    '169.254.169.254',
    '168.63.129.16',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.192',
    '192.168.1.1',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::8.8.8.8',
    '::ffff:10.0.0.1',
    '::ffff:a9fe:a9fe',
    '0:0:0:0:0:ffff:127.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b::10.0.0.1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b:1::8.8.8.8',
    '2002:7f00:1::',
    '2002:a9fe:a9fe::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2001:db8::1',
    'fc00::1',
    'fd00:ec2::254',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'ff02::1',
  ])('[RS-15] %s is refused', (address) => {
    expect(guard.isRefused(address)).toBe(true);
  });

  test.each([
    '',
    'example.org',
    '127.1',
    '0x7f.0.0.1',
    '1.2.3.4%eth0',
    '2606:4700::1111%eth0',
    ':::',
    '1.2.3.4/8',
  ])('[RS-15] what is no address is refused: %j', (text) => {
    expect(guard.isRefused(text)).toBe(true);
  });

  test.each([
    '1.1.1.1',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '172.15.255.255',
    '172.32.0.0',
    '169.253.255.255',
    '203.0.113.80',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00::1',
    '::ffff:1.1.1.1',
    '64:ff9b::1.1.1.1',
    '2002:101:101::1',
  ])('[RS-15] %s is not', (address) => {
    expect(guard.isRefused(address)).toBe(false);
  });

  test('[RS-15] of ranges can be added and taken out', () => {
    const own = new AddressGuard({
      refuse: ['203.0.113.0/24', '2a00::/12'],
      permit: ['10.1.0.0/16', 'fd12::/16'],
    });
    expect(own.isRefused('203.0.113.80')).toBe(true);
    expect(own.isRefused('::ffff:203.0.113.80')).toBe(true);
    expect(own.isRefused('2a00::1')).toBe(true);
    expect(own.isRefused('10.1.2.3')).toBe(false);
    expect(own.isRefused('::ffff:10.1.2.3')).toBe(false);
    expect(own.isRefused('10.2.2.3')).toBe(true);
    expect(own.isRefused('fd12::1')).toBe(false);
    expect(own.isRefused('fd13::1')).toBe(true);
  });

  test.each(['10.0.0.0', '10.0.0.0/33', 'fc00::/129', 'example.org/8', '/8', '10.0.0.0/', 'fe80::1%eth0/64'])(
    '[RS-15] a range that is none stops the start: %s',
    (range) => {
      expect(() => new AddressGuard({ permit: [range] })).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', field: 'permit' }),
      );
    },
  );
});

test('[RS-15] IPv6 addresses are read in every spelling', () => {
  expect(parseIpv6('::')).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  expect(parseIpv6('1:2:3:4:5:6:7:8')).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(parseIpv6('1::')).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
  expect(parseIpv6('::FFFF:1.2.3.4')).toEqual([0, 0, 0, 0, 0, 0xffff, 0x102, 0x304]);
  expect(parseIpv6('1:2:3:4:5:6:7::')).toEqual([1, 2, 3, 4, 5, 6, 7, 0]);
  // Whatever Node takes for an address becomes eight numbers.
  for (let round = 0; round < 2000; round++) {
    const groups = Array.from({ length: 1 + Math.floor(Math.random() * 9) }, () =>
      Math.random() < 0.3 ? '' : Math.floor(Math.random() * 65_536).toString(16),
    );
    const text = groups.join(':');
    const parsed = parseIpv6(text);
    expect([text, parsed === undefined ? !isIPv6(text) : parsed.length === 8]).toEqual([text, true]);
  }
});
