import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { HotcellError } from '../core/errors.ts';

/**
 * Addresses that are not of the public internet, or that lead to the machine or its cloud. 203.0.113.0/24 is not among them:
 * it is for documents, harmless, and there are networks in which public names have such addresses.
 */
const REFUSED_RANGES: readonly string[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  // The metadata service of a cloud among them.
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // A cloud's own service at an address that looks public.
  '168.63.129.16/32',
  // Unspecified, loopback, and IPv4 addresses in a form that nobody uses any more.
  '::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
];

export interface GuardOptions {
  /** More ranges to refuse. */
  readonly refuse?: readonly string[];
  /** Ranges that are reached all the same. */
  readonly permit?: readonly string[];
}

export class AddressGuard {
  readonly #refused: BlockList;
  readonly #permitted: BlockList;

  constructor({ refuse = [], permit = [] }: GuardOptions = {}) {
    this.#refused = toBlockList([...REFUSED_RANGES, ...refuse], 'refuse');
    this.#permitted = toBlockList(permit, 'permit');
  }

  /** SECURITY: what is not understood is refused. */
  isRefused(address: string): boolean {
    if (isIPv4(address)) return this.#isListed(address, 'ipv4');
    const groups = parseIpv6(address);
    if (groups === undefined) return true;
    // SECURITY: a packet to it ends at the IPv4 address inside.
    const inner = embeddedIpv4(groups);
    return inner === undefined ? this.#isListed(address, 'ipv6') : this.#isListed(inner, 'ipv4');
  }

  #isListed(address: string, family: 'ipv4' | 'ipv6'): boolean {
    return this.#refused.check(address, family) && !this.#permitted.check(address, family);
  }
}

function toBlockList(ranges: readonly string[], field: string): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [, address = '', digits = ''] = /^([^/]+)\/(\d{1,3})$/.exec(range) ?? [];
    const prefix = Number(digits);
    const isRange = digits !== '' && (isIPv4(address) ? prefix <= 32 : isIPv6(address) && prefix <= 128);
    if (!isRange || address.includes('%')) {
      throw new HotcellError('CONFIG_INVALID', `${JSON.stringify(range)} is not a range of addresses`, {
        field,
        hint: 'Write ranges such as 10.0.0.0/8 or fc00::/7.',
      });
    }
    list.addSubnet(address, prefix, isIPv4(address) ? 'ipv4' : 'ipv6');
  }
  return list;
}

/** The eight numbers of an IPv6 address; undefined for anything else, and for one that names an interface. */
export function parseIpv6(address: string): number[] | undefined {
  if (!isIPv6(address) || address.includes('%')) return undefined;
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text =
    dotted === null
      ? address
      : `${dotted[1]}${hexPair(dotted[2], dotted[3])}:${hexPair(dotted[4], dotted[5])}`;
  const [head = '', tail] = text.split('::');
  const before = toGroups(head);
  if (tail === undefined) return before;
  const after = toGroups(tail);
  return [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function hexPair(high = '0', low = '0'): string {
  return (Number(high) * 256 + Number(low)).toString(16);
}

function toGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}

/** The IPv4 address in a mapped (::ffff:0:0/96), translated (64:ff9b::/96, ::ffff:0:0:0/96) or 6to4 (2002::/16) one. */
function embeddedIpv4(groups: readonly number[]): string | undefined {
  const [first, second, third] = groups;
  if (first === 0x2002) return toIpv4(second, third);
  const prefix = groups
    .slice(0, 6)
    .map((group) => group.toString(16))
    .join(':');
  const isEmbedding = ['0:0:0:0:0:ffff', '0:0:0:0:ffff:0', '64:ff9b:0:0:0:0'].includes(prefix);
  return isEmbedding ? toIpv4(groups[6], groups[7]) : undefined;
}

function toIpv4(high = 0, low = 0): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
