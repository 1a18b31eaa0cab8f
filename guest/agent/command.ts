import { encodeFrame, type Frame } from '../../src/lib/frames.ts';
import { parseFigures } from '../../src/drivers/agent/report.ts';

export interface StartOptions {
  readonly alone?: boolean;
  readonly cwd?: string;
  readonly touch?: string;
  /** Rows and columns. */
  readonly terminal?: string;
  readonly fallback?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Grants as much output as comes; true unless said otherwise. */
  readonly grants?: boolean;
}

export interface Ending {
  /** `X`, `F` or `L`, as the agent said it. */
  readonly type: string;
  readonly words: string;
  readonly exitCode: number;
  readonly signal: number;
  readonly figures: Readonly<Record<string, number>>;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** Where its shell says that it ended. */
  readonly place: string | undefined;
}

/** One command, as raw as the frames are. */
export class Command {
  readonly result: Promise<Ending>;
  readonly #id: number;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #grants: boolean;
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  readonly #answers: ((figures: Record<string, number>) => void)[] = [];
  #place: string | undefined;
  #finish: (ending: Ending) => void = () => {};
  #heard: () => void = () => {};
  isEnded = false;

  constructor(id: number, send: (bytes: Uint8Array) => void, grants: boolean) {
    this.#id = id;
    this.#send = send;
    this.#grants = grants;
    this.result = new Promise((resolve) => (this.#finish = resolve));
  }

  toStart(argv: readonly string[], options: StartOptions = {}): Uint8Array {
    const env = Object.entries(options.env ?? {}).map(([name, value]) => `${name}=${value}`);
    const head = [
      options.alone === true ? '1' : '0',
      options.cwd ?? '/tmp',
      options.touch ?? '',
      options.terminal ?? '',
      options.fallback ?? '',
    ];
    return encodeFrame(
      'S',
      this.#id,
      Buffer.from([...head, String(argv.length), ...argv, ...env].join('\0')),
    );
  }

  toInput(bytes: Uint8Array): Uint8Array {
    return encodeFrame('I', this.#id, bytes);
  }

  toEnd(): Uint8Array {
    return encodeFrame('E', this.#id);
  }

  toKill(): Uint8Array {
    return encodeFrame('K', this.#id);
  }

  write(bytes: Uint8Array | string): this {
    this.#send(this.toInput(Buffer.from(bytes)));
    return this;
  }

  closeStdin(): this {
    this.#send(this.toEnd());
    return this;
  }

  terminate(): this {
    this.#send(encodeFrame('T', this.#id));
    return this;
  }

  resize(size: string): this {
    this.#send(encodeFrame('W', this.#id, Buffer.from(size)));
    return this;
  }

  kill(): this {
    this.#send(this.toKill());
    return this;
  }

  grant(bytes: number): void {
    const payload = Buffer.alloc(4);
    payload.writeUInt32BE(bytes);
    this.#send(encodeFrame('C', this.#id, payload));
  }

  usage(): Promise<Readonly<Record<string, number>>> {
    this.#send(encodeFrame('U', this.#id));
    return new Promise((resolve) => this.#answers.push(resolve));
  }

  get stdout(): Buffer {
    return Buffer.concat(this.#out);
  }

  get received(): number {
    return [...this.#out, ...this.#err].reduce((sum, { length }) => sum + length, 0);
  }

  /** Waits until what it has said meets the condition; fails when it ends before that. */
  async until(condition: (command: this) => boolean): Promise<void> {
    while (!condition(this)) {
      if (this.isEnded) throw new Error(`ended too early: ${JSON.stringify(this.stdout.toString())}`);
      await new Promise<void>((resolve) => (this.#heard = resolve));
    }
  }

  says(text: string): Promise<void> {
    return this.until(() => this.stdout.includes(text));
  }

  receive({ type, payload }: Frame): void {
    // Kept beyond the chunk that it came in.
    const bytes = Buffer.from(payload);
    if (this.isEnded) throw new Error(`a frame ${type} after the end`);
    if (type === 'O') this.#out.push(bytes);
    else if (type === 'e') this.#err.push(bytes);
    else if (type === 'P') this.#place = bytes.toString();
    else if (type === 'U') this.#answers.shift()?.(toObject(bytes));
    else this.#end(type, bytes);
    if (this.#grants && (type === 'O' || type === 'e')) this.grant(bytes.length);
    this.#heard();
  }

  #end(type: string, bytes: Buffer): void {
    this.isEnded = true;
    const figures = toObject(bytes);
    const wait = figures['wait'] ?? 0;
    this.#finish({
      type,
      words: bytes.toString(),
      exitCode: wait >> 8,
      signal: wait & 0x7f,
      figures,
      stdout: Buffer.concat(this.#out),
      stderr: Buffer.concat(this.#err),
      place: this.#place,
    });
  }
}

function toObject(bytes: Uint8Array): Record<string, number> {
  return Object.fromEntries(parseFigures(bytes));
}
