import { stripVTControlCharacters } from 'node:util';
import type { Terminal } from './terminal.ts';

const CLEAR = '\r\u001b[2K';
const USUAL_WIDTH = 79;

/** What is under way, on stderr: one line that changes on a terminal, plain lines elsewhere. */
export class ProgressLine implements Disposable {
  readonly #terminal: Terminal;
  #isShown = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(text: string): void {
    const { stderr } = this.#terminal;
    if (!stderr.isTTY) {
      this.#terminal.note(text);
      return;
    }
    // A line that wraps could not be cleared any more. Some terminals say that they have no width.
    const width = stderr.columns > 1 ? stderr.columns - 1 : USUAL_WIDTH;
    stderr.write(CLEAR + stripVTControlCharacters(text).slice(0, width));
    this.#isShown = true;
  }

  /** Makes room for something that stays. */
  clear(): void {
    if (this.#isShown) this.#terminal.stderr.write(CLEAR);
    this.#isShown = false;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
