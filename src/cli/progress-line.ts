import type { Terminal } from './terminal.ts';

/** What is under way, on stderr: one line that changes on a terminal, plain lines elsewhere. */
export class ProgressLine implements Disposable {
  readonly #terminal: Terminal;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  show(text: string): void {
    if (this.#terminal.stderr.isTTY) this.#terminal.showProgress(text);
    else this.#terminal.note(text);
  }

  clear(): void {
    this.#terminal.showProgress('');
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
