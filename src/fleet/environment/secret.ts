const SHOWN = '[secret]';
/** Node's `util.inspect`, and with it `console.log`, asks for this. */
const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** A value that is not printed by accident: only `reveal` has it. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** SECURITY: for the place where it is used, and for no message. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return SHOWN;
  }

  toJSON(): string {
    return SHOWN;
  }

  [INSPECT](): string {
    return SHOWN;
  }
}
