import { styleText } from 'node:util';

export type Paint = (text: string) => string;

/** The two streams of the command: data goes to stdout, everything for people meanwhile to stderr. */
export class Terminal {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  /** Aborts when nobody reads stdout any more, so that nothing runs on for no one. */
  readonly unread: AbortSignal;

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
    this.stdout.write(`${text}\n`);
  }

  json(value: unknown): void {
    this.line(JSON.stringify(value, undefined, 2));
  }

  note(text: string): void {
    this.stderr.write(`${text}\n`);
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
