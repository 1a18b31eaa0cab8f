export interface ServerSentEvent {
  /** `message` unless the stream names it. */
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
}

/** Parses server-sent events as the HTML standard says, however the bytes are cut. */
export class EventStreamParser {
  readonly #longestEvent: number;
  // It takes one BOM away at the very beginning, as the standard has it.
  readonly #decoder = new TextDecoder();
  #line = '';
  #isAfterCr = false;
  #type = '';
  #data: string[] = [];
  #dataLength = 0;
  #id = '';
  #lastEventId = '';
  #retryMs: number | undefined;

  /** SECURITY: `longestEvent` in characters; a stream without line ends would otherwise fill our memory. */
  constructor(longestEvent: number) {
    this.#longestEvent = longestEvent;
  }

  /** Of the last block that is complete, also of one without data. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** How long the server wants us to wait before we connect again. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  push(bytes: Uint8Array): ServerSentEvent[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    const events: ServerSentEvent[] = [];
    // A line that ends in CR is complete; if LF follows, it belongs to the same end.
    let at = this.#isAfterCr && text.startsWith('\n') ? 1 : 0;
    if (text !== '') this.#isAfterCr = false;
    const lineEnd = /[\r\n]/g;
    lineEnd.lastIndex = at;
    for (let end = lineEnd.exec(text); end !== null; end = lineEnd.exec(text)) {
      const line = this.#line + text.slice(at, end.index);
      this.#line = '';
      at = end.index + 1;
      if (end[0] === '\r') {
        if (text[at] === '\n') at += 1;
        else this.#isAfterCr = at === text.length;
      }
      lineEnd.lastIndex = at;
      const event = this.#take(line);
      if (event !== undefined) events.push(event);
    }
    this.#line += text.slice(at);
    if (this.#line.length + this.#dataLength > this.#longestEvent)
      throw new RangeError('an event has no end');
    return events;
  }

  #take(line: string): ServerSentEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === -1) this.#field(line, '');
    // A line that begins with a colon is a comment: its field has no name.
    else this.#field(line.slice(0, colon), line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1));
    return undefined;
  }

  #field(name: string, value: string): void {
    if (name === 'event') this.#type = value;
    else if (name === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length + 1;
    } else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) this.#retryMs = Number(value);
  }

  #dispatch(): ServerSentEvent | undefined {
    this.#lastEventId = this.#id;
    const event =
      this.#data.length === 0
        ? undefined
        : { type: this.#type || 'message', data: this.#data.join('\n'), lastEventId: this.#id };
    this.#data = [];
    this.#dataLength = 0;
    this.#type = '';
    return event;
  }
}
