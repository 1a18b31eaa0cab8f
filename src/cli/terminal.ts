import { stripVTControlCharacters, styleText } from 'node:util';

export type Paint = (text: string) => string;

/** Of the line that the cursor is in. */
const CLEAR = '\r\u001b[2K';
const USUAL_WIDTH = 79;

/** The two streams of the command: data goes to stdout, everything for people meanwhile to stderr. */
export class Terminal {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Aborts when nobody reads stdout any more, so that nothing runs on for no one. */
  readonly unread: AbortSignal;
  /** As it is drawn; empty unless something is under way. */
  #progress = '';

  constructor(streams: { stdout: NodeJS.WriteStream; stderr: NodeJS.WriteStream }) {
    this.stdout = streams.stdout;
    this.stderr = streams.stderr;
    const controller = new AbortController();
    this.unread = controller.signal;
    for (const stream of [this.stdout, this.stderr]) {
      stream.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EPIPE') throw error;
        controller.abort();
      });
    }
  }

  line(text: string): void {
    this.#write(this.stdout, text);
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value, undefined, 2));
  }

  note(text: string): void {
    this.#write(this.stderr, text);
  }

  /**
   * What is under way, where stderr is a terminal: the last line of the screen, drawn again below whatever is written
   * meanwhile. An empty text takes it away.
   */
  showProgress(text: string): void {
    if (!this.stderr.isTTY || (text === '' && this.#progress === '')) return;
    // A line that wraps could not be cleared any more. Some terminals say that they have no width.
    const width = this.stderr.columns > 1 ? this.stderr.columns - 1 : USUAL_WIDTH;
    this.#progress = stripVTControlCharacters(text).slice(0, width);
    this.stderr.write(CLEAR + this.#progress);
  }

  #write(stream: NodeJS.WriteStream, text: string): void {
    // Both streams end on the same screen.
    const isInTheWay = this.#progress !== '' && stream.isTTY;
    if (isInTheWay) this.stderr.write(CLEAR);
    stream.write(`${text}\n`);
    if (isInTheWay) this.stderr.write(this.#progress);
  }

  /** Text styles for stdout that vanish off a terminal and under NO_COLOR. */
  get paint(): {
    readonly bold: Paint;
    readonly dim: Paint;
    readonly green: Paint;
    readonly red: Paint;
    readonly yellow: Paint;
  } {
    const style =
      (format: 'bold' | 'dim' | 'green' | 'red' | 'yellow'): Paint =>
      (text) =>
        styleText(format, text, { stream: this.stdout });
    return {
      bold: style('bold'),
      dim: style('dim'),
      green: style('green'),
      red: style('red'),
      yellow: style('yellow'),
    };
  }

  /** Resolves when everything written is handed to the system, or nobody reads it. */
  async flush(): Promise<void> {
    for (const stream of [this.stdout, this.stderr]) {
      await new Promise<void>((resolve) => {
        stream.write('', () => resolve());
      });
    }
  }
}
