import { ProgressLine } from '../progress-line.ts';
import type { Terminal } from '../terminal.ts';
import { toDurationText } from './duration-text.ts';
import { oneLine } from '../../lib/one-line.ts';

const TICK_MS = 500;
/** Where every line stays. */
const LINE_MS = 30_000;
const LONGEST = 500;

/** While an agent works: what it is at and for how long; on a terminal a line that moves, elsewhere one now and then. */
export class AgentProgress implements Disposable {
  readonly #terminal: Terminal;
  readonly #line: ProgressLine;
  readonly #lineMs: number;
  #text = '';
  #detail = '';
  #since: number | undefined;
  #saidAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(terminal: Terminal, lineMs = LINE_MS) {
    this.#terminal = terminal;
    this.#line = new ProgressLine(terminal);
    this.#lineMs = lineMs;
  }

  /** What begins. */
  show(text: string): void {
    this.#text = text;
    this.#detail = '';
    this.#since ??= Date.now();
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    this.#draw();
  }

  /** How it goes: may change as often as it likes. */
  detail(text: string): void {
    this.#detail = text;
    this.#tick();
  }

  clear(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#line.clear();
  }

  [Symbol.dispose](): void {
    this.clear();
  }

  #tick(): void {
    if (this.#timer === undefined) return;
    if (this.#terminal.stderr.isTTY || Date.now() - this.#saidAt >= this.#lineMs) this.#draw();
  }

  #draw(): void {
    this.#saidAt = Date.now();
    const elapsedMs = this.#saidAt - (this.#since ?? this.#saidAt);
    const time = elapsedMs < 1000 ? '' : `${toDurationText(elapsedMs)} · `;
    // SECURITY: it may be what the agent says. The time comes first, since what is too long for a terminal is cut.
    const text = oneLine(this.#detail === '' ? this.#text : this.#detail, LONGEST);
    this.#line.show(`fleet: ${time}${text}`);
  }
}
