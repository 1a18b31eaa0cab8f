/** A place in a text. Past the end everything is empty text. */
export class TextCursor {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** The next characters, which stay where they are. */
  peek(length = 1): string {
    return this.#text.slice(this.#at, this.#at + length);
  }

  get previous(): string {
    return this.#text[this.#at - 1] ?? '';
  }

  take(length = 1): string {
    const taken = this.peek(length);
    this.#at += length;
    return taken;
  }

  /** What `pattern`, a sticky one, matches here. */
  takeMatch(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    if (match !== undefined) this.#at += match.length;
    return match;
  }

  /** Everything before the next `end`, or all of the rest; `end` itself stays. */
  takeUntil(end: string): string {
    const place = this.#text.indexOf(end, this.#at);
    return this.take((place === -1 ? this.#text.length : place) - this.#at);
  }

  /** Like `takeUntil`, but a backslash protects the character after it. */
  takeUntilUnescaped(end: string): string {
    const start = this.#at;
    while (!this.isAtEnd && this.#text[this.#at] !== end) this.#at += this.#text[this.#at] === '\\' ? 2 : 1;
    return this.#text.slice(start, this.#at);
  }

  /** What stands between the quote here and the next one that no backslash protects; undefined if there is none. */
  takeBetween(quote: string): string | undefined {
    if (this.peek() !== quote) return undefined;
    const start = this.#at++;
    const inside = this.takeUntilUnescaped(quote);
    if (this.take() === quote) return inside;
    this.#at = start;
    return undefined;
  }
}
