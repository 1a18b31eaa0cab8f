import type { Log } from '../core/log.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';

/** SECURITY: a program can ask for hosts without end. So many refusals are kept of a way out, */
const KEPT = 100;
/** and so many lines a minute does it get in the log of the server. */
const LINES_PER_MINUTE = 60;
const LONGEST_HOST = 260;
const MINUTE_MS = 60_000;

/** What was refused on one way out. */
export class RefusalLog {
  readonly #log: Log;
  readonly #latest: EgressRefusal[] = [];
  #count = 0;
  #lines = 0;
  #minute = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  get count(): number {
    return this.#count;
  }

  get latest(): EgressRefusal[] {
    return [...this.#latest];
  }

  add(refusal: Omit<EgressRefusal, 'at'>): void {
    const now = Date.now();
    const entry = { ...refusal, host: printable(refusal.host), at: new Date(now).toISOString() };
    this.#count++;
    this.#latest.push(entry);
    if (this.#latest.length > KEPT) this.#latest.shift();
    this.#writeLine(entry, Math.floor(now / MINUTE_MS));
  }

  /** Those after the first `count`, as far as they are kept. */
  since(count: number): EgressRefusal[] {
    const fresh = this.#count - count;
    return fresh <= 0 ? [] : this.#latest.slice(-fresh);
  }

  /** SECURITY: without the path, in which there may be a secret of the program's user. */
  #writeLine({ host, port, code, reason, method, scheme }: EgressRefusal, minute: number): void {
    if (minute !== this.#minute) {
      this.#minute = minute;
      this.#lines = 0;
    }
    if (++this.#lines > LINES_PER_MINUTE) return;
    const request = scheme === undefined ? {} : { scheme, method };
    this.#log.info({ host, port, code, reason, ...request }, 'egress refused');
  }
}

/** SECURITY: it ends up in logs, replies and terminals. */
export function printable(host: string): string {
  return host.slice(0, LONGEST_HOST).replaceAll(/[^\x21-\x7e]/g, '?');
}
