import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Exec, ExecRequest } from '../core/exec.ts';
import type { Log } from '../core/log.ts';
import { PROXY_IN_CELL, RELAY, proxyVariables } from './cell-side.ts';
import { GatedNetwork } from './cell-network.ts';
import type { WayOut } from './way-out.ts';

export interface RelayNetworkParts {
  readonly egress: WayOut;
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  startHelper(request: ExecRequest): Promise<Exec>;
}

/** Commands wait this long for the way out, then they begin without it. */
const READY_MS = 5000;
/** A program of the cell may kill the relay again and again: that must not keep us busy. */
const AGAIN_MS = 500;

/** The way out of a cell with a loopback of its own: the relay in it, which is started again when it dies. */
export class RelayNetwork extends GatedNetwork {
  readonly variables: Readonly<Record<string, string>>;
  readonly port = undefined;
  readonly #parts: RelayNetworkParts;
  readonly #ready = Promise.withResolvers<void>();
  #isReady = false;
  #isClosed = false;

  /** `variables`: more of them than those of the proxy. */
  constructor(parts: RelayNetworkParts, variables: Readonly<Record<string, string>>) {
    super(parts.egress);
    this.#parts = parts;
    this.variables = { ...proxyVariables(PROXY_IN_CELL), ...variables };
  }

  /** Nobody waits here for the way out; commands do. */
  open(): void {
    void this.#keepRelay();
    const cancel = this.#parts.clock.after(READY_MS, () => this.#setReady());
    void this.#ready.promise.then(cancel);
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  untilReady(): Promise<void> {
    return this.#ready.promise;
  }

  #setReady(): void {
    this.#isReady = true;
    this.#ready.resolve();
  }

  async #keepRelay(): Promise<void> {
    const { clock, egress, log } = this.#parts;
    while (!this.#isClosed) {
      try {
        const exec = await this.#parts.startHelper(RELAY);
        await egress.serve(exec, () => this.#setReady());
      } catch (error) {
        log.debug({ error: messageOf(error) }, 'relay start failed');
      }
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => clock.after(AGAIN_MS, resolve));
    }
  }

  override close(): void {
    this.#isClosed = true;
    this.#setReady();
    super.close();
  }
}
