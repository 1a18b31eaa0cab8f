import { lookup as systemLookup } from 'node:dns/promises';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import type { Semaphore } from '../lib/semaphore.ts';
import type { AddressGuard } from './address-guard.ts';
import type { Destination, Refused } from './host-name.ts';

/** All addresses of a name. */
export type Lookup = (host: string) => Promise<readonly string[]>;

export const SYSTEM_LOOKUP: Lookup = async (host) => {
  const found = await systemLookup(host, { all: true, verbatim: true });
  return found.map(({ address }) => address);
};

export interface DialerParts {
  readonly guard: AddressGuard;
  readonly lookup: Lookup;
  readonly timeoutMs: number;
}

export type Dialled =
  | { readonly socket: Socket }
  | { readonly refused: Refused }
  /** Nobody forbids it, but there is no way. */
  | { readonly failed: string };

/** Of several addresses, how long one is waited for before the next is tried. */
const NEXT_ADDRESS_MS = 2000;
const KEEP_ALIVE_MS = 30_000;

/** Resolves names that are allowed, and connects to what it found. */
export class Dialer {
  readonly #parts: DialerParts;

  constructor(parts: DialerParts) {
    this.#parts = parts;
  }

  /** `turns`: a way out waits for its own lookups and not for those of others. */
  async dial(to: Destination, turns: Semaphore): Promise<Dialled> {
    const resolved = await turns.run(() => this.resolve(to.host));
    return 'refused' in resolved ? resolved : this.#connect(to, resolved.addresses);
  }

  /** What a name stands for, if one may go there. */
  async resolve(host: string): Promise<{ addresses: readonly string[] } | { refused: Refused }> {
    const { guard, lookup, timeoutMs } = this.#parts;
    const addresses = await within(timeoutMs, lookup(host));
    if (addresses === undefined || addresses.length === 0) {
      return { refused: { code: 'unresolvable', reason: 'the name has no address here' } };
    }
    // SECURITY: all of them, since whoever owns the name chooses in which order they come.
    const refused = addresses.filter((address) => guard.isRefused(address));
    if (refused.length === 0) return { addresses };
    const reason = `the name stands for ${refused[0]}, which is not an address of the public internet`;
    return { refused: { code: 'private_address', reason, addresses: refused } };
  }

  /** SECURITY: to the addresses that were looked at; the name is not resolved again. */
  #connect({ host, port }: Destination, addresses: readonly string[]): Promise<Dialled> {
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const options = {
      // SECURITY: reads on when all was taken, and does not collect little pieces meanwhile.
      readableHighWaterMark: 1,
      host,
      port,
      lookup: ((_host, _options, callback) => callback(null, found)) satisfies LookupFunction,
      allowHalfOpen: true,
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    };
    const socket = connect(options);
    return new Promise((resolve) => {
      const timer = setTimeout(() => socket.destroy(new Error('no answer in time')), this.#parts.timeoutMs);
      const settle = (dialled: Dialled): void => {
        clearTimeout(timer);
        socket.off('connect', connected);
        resolve(dialled);
      };
      const connected = (): void => settle({ socket });
      socket.once('connect', connected);
      // Stays: whoever uses the socket looks at 'close'.
      socket.on('error', (error) => settle({ failed: describeFailure(error) }));
    });
  }
}

function describeFailure(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}

/** Undefined when it fails or takes too long. */
async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), timeoutMs);
  try {
    return await Promise.race([work, late.promise]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
