import { stripVTControlCharacters } from 'node:util';

const KEPT_LINES = 8;
/** What the builder says of its own doings, between the lines of the steps. */
const BOOKKEEPING = /^( ---> |Removing intermediate container )/;

/** The log of a build, which comes in pieces, as lines; remembers what the step that is under way printed last. */
export class BuildLog {
  readonly #onLine: (line: string) => void;
  #begun = '';
  #last: string[] = [];

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  write(piece: string): void {
    const lines = (this.#begun + piece).split(/\r?\n|\r/);
    this.#begun = lines.pop() ?? '';
    for (const line of lines) this.#take(line);
  }

  /** The last lines of the step under way, its own line first. */
  get lastLines(): readonly string[] {
    this.write('\n');
    return this.#last;
  }

  #take(raw: string): void {
    // SECURITY: programs of the base print what they like; nothing of it may steer the terminal.
    const line = stripVTControlCharacters(raw)
      .replaceAll(/\p{Cc}/gu, ' ')
      .trimEnd();
    if (line === '' || BOOKKEEPING.test(line)) return;
    if (/^Step \d+\/\d+ : /.test(line)) this.#last = [];
    // The line of the step stays, whatever it prints after it.
    if (this.#last.length > KEPT_LINES) this.#last.splice(1, 1);
    this.#last.push(line);
    this.#onLine(line);
  }
}
