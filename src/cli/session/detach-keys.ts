const ESCAPE = 0x1d;
const DETACH = 'd'.charCodeAt(0);

/** For people, as the help writes it. */
export const DETACH_KEYS = 'Ctrl-] d';

/** Looks for Ctrl-] and then d in what is typed. Ctrl-] twice is Ctrl-] once; before anything else it is itself. */
export class DetachKeys {
  #isEscaped = false;

  /** What is to be passed on, and whether the person wants to leave. */
  take(typed: Uint8Array): { readonly pass: Uint8Array; readonly leaves: boolean } {
    const pass: number[] = [];
    for (const byte of typed) {
      if (this.#isEscaped) {
        this.#isEscaped = false;
        if (byte === DETACH) return { pass: Uint8Array.from(pass), leaves: true };
        pass.push(ESCAPE);
        if (byte !== ESCAPE) pass.push(byte);
      } else if (byte === ESCAPE) this.#isEscaped = true;
      else pass.push(byte);
    }
    return { pass: Uint8Array.from(pass), leaves: false };
  }
}
