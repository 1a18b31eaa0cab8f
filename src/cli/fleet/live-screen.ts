import type { Terminal } from '../terminal.ts';

/** A second screen, home, and lines that are cut instead of wrapped: what was on the first one stays as it was. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const USUAL_ROWS = 24;

/** Text that is drawn again and again in place. */
export class LiveScreen implements Disposable {
  readonly #terminal: Terminal;
  readonly #leave = (): void => this[Symbol.dispose]();
  readonly #redraw = (): void => this.#draw();
  #lines: readonly string[] = [];
  #isOpen = true;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    terminal.stdout.write(ENTER);
    terminal.stdout.on('resize', this.#redraw);
    // A second Ctrl-C ends us without asking anybody.
    process.on('exit', this.#leave);
  }

  show(lines: readonly string[]): void {
    this.#lines = lines;
    this.#draw();
  }

  #draw(): void {
    const { stdout } = this.#terminal;
    const rows = stdout.rows > 1 ? stdout.rows : USUAL_ROWS;
    const shown =
      this.#lines.length <= rows
        ? this.#lines
        : [...this.#lines.slice(0, rows - 1), `… ${this.#lines.length - rows + 1} more lines`];
    stdout.write(HOME + shown.map((line) => line + CLEAR_LINE_END).join('\r\n') + CLEAR_BELOW);
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.off('exit', this.#leave);
    this.#terminal.stdout.off('resize', this.#redraw);
    this.#terminal.stdout.write(LEAVE);
  }
}
