import { ProgressLine } from './progress-line.ts';
import type { Terminal } from './terminal.ts';

const SLOW_MS = 1000;

/** Says what is under way once it has taken a second, and then, on a terminal, how far it is. */
export class SlowNote implements Disposable {
  readonly #terminal: Terminal;
  readonly #line: ProgressLine;
  readonly #name: string;
  #timer: NodeJS.Timeout | undefined;

  /** `name`: of the command, as people know it. */
  constructor(terminal: Terminal, name = 'hotcell') {
    this.#terminal = terminal;
    this.#name = name;
    this.#line = new ProgressLine(terminal);
  }

  tell(describe: () => string): void {
    let isSaid = false;
    this.#timer = setInterval(() => {
      // Elsewhere every line stays, so that one is enough.
      if (isSaid && !this.#terminal.stderr.isTTY) return;
      isSaid = true;
      this.#line.show(`${this.#name}: ${describe()}`);
    }, SLOW_MS);
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#line.clear();
  }
}
