import type { Log } from '../core/log.ts';
import { AddressGuard, type GuardOptions } from './address-guard.ts';
import { Dialer, SYSTEM_LOOKUP, type Lookup } from './dialer.ts';
import { AllowList } from './allow-list.ts';
import type { Allowed } from './cell-network.ts';
import { InjectedHeaders, type HeaderInjection } from './header-injection.ts';
import { HTTP_PORT, TLS_PORT, parseAuthority, type Destination, type Refused } from './host-name.ts';
import { presetVariables, type PresetTable } from './presets.ts';
import type { ProxyKey } from './proxy-key.ts';
import { HOW_TO_ALLOW } from './refusal-reply.ts';
import { WayOut } from './way-out.ts';
import { TlsClient } from './tls-client.ts';

export interface EgressGateOptions extends GuardOptions {
  readonly presets: PresetTable;
  /** All addresses of a name; the system's unless given. */
  readonly lookup?: Lookup;
  readonly log: Log;
  /** For resolving, for connecting, and for the handshake of TLS. */
  readonly connectTimeoutMs?: number;
  /** Authorities that are trusted beside those of Node where the gate itself speaks TLS, in PEM. */
  readonly caBundle?: Uint8Array | undefined;
}

export interface OpenOptions {
  /** What every request must show, where others than programs of the cell can connect, too. */
  readonly key?: ProxyKey;
  /** What a program is told that was refused something, in a sentence. */
  readonly howToAllow?: string;
  /** What the gate adds to requests for hosts that the list allows. */
  readonly inject?: readonly HeaderInjection[] | undefined;
}

const CONNECT_MS = 15_000;

/** The only way from cells to the network. */
export class EgressGate {
  readonly #options: EgressGateOptions;
  readonly #dialer: Dialer;
  readonly #tls: TlsClient;
  readonly #waysOut = new Set<WayOut>();

  constructor(options: EgressGateOptions) {
    this.#options = options;
    const timeoutMs = options.connectTimeoutMs ?? CONNECT_MS;
    this.#dialer = new Dialer({
      guard: new AddressGuard(options),
      lookup: options.lookup ?? SYSTEM_LOOKUP,
      timeoutMs,
    });
    this.#tls = new TlsClient({ caBundle: options.caBundle, timeoutMs });
  }

  open(allow: readonly Allowed[], options: OpenOptions = {}): WayOut {
    const { key, howToAllow = HOW_TO_ALLOW, inject } = options;
    const { presets, log } = this.#options;
    const onClose = (closed: WayOut): void => void this.#waysOut.delete(closed);
    const wayOut = new WayOut(allow, {
      dialer: this.#dialer,
      tls: this.#tls,
      presets,
      log,
      key,
      howToAllow,
      injected: new InjectedHeaders(inject),
      onClose,
    });
    this.#waysOut.add(wayOut);
    return wayOut;
  }

  /**
   * Why a cell with this list would not get there, as far as that is known without connecting; or undefined. With addresses
   * that are refused whatever the list says, so that nobody has to learn of one obstacle after the other.
   */
  async whyNot(allow: readonly Allowed[], url: URL): Promise<Refused | undefined> {
    const usualPort = url.protocol === 'http:' ? HTTP_PORT : TLS_PORT;
    const parsed = parseAuthority(url.host, usualPort);
    const refused = 'refused' in parsed ? parsed.refused : this.#whyNotListed(allow, parsed.to, usualPort);
    if (refused?.code === 'malformed') return refused;
    const resolved = await this.#dialer.resolve(url.hostname.replace(/^\[|\]$/g, ''));
    const atAddress = 'refused' in resolved ? resolved.refused : undefined;
    if (refused === undefined || atAddress?.addresses === undefined) return refused ?? atAddress;
    return { ...refused, addresses: atAddress.addresses };
  }

  #whyNotListed(allow: readonly Allowed[], to: Destination, usualPort: number): Refused | undefined {
    return new AllowList(allow, this.#options.presets).check({ to, usualPort, request: undefined });
  }

  /** What tells programs in a cell where packages are, as far as the list allows them to go there. */
  variables(allow: readonly Allowed[]): Readonly<Record<string, string>> {
    return presetVariables(this.#options.presets, allow);
  }

  /** Closes every way out and every connection of theirs. */
  async close(): Promise<void> {
    const waysOut = [...this.#waysOut];
    for (const wayOut of waysOut) wayOut.close();
    await Promise.all(waysOut.map((wayOut) => wayOut.done()));
  }
}
