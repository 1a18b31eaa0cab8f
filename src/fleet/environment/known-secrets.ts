import { Redactor } from './redactor.ts';
import type { Secret } from './secret.ts';

/**
 * What no file may keep of what the programs of a fleet print and change: every secret that this process has given to an
 * agent, or found beside it. One that was renewed since may still lie in a file, so none is forgotten.
 */
export class KnownSecrets {
  readonly #byValue = new Map<string, Secret>();

  add(secrets: readonly Secret[]): void {
    for (const secret of secrets) this.#byValue.set(secret.reveal(), secret);
  }

  /** For one stream. */
  redactor(): Redactor {
    return new Redactor([...this.#byValue.values()]);
  }
}
