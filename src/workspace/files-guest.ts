import { HotcellError } from '../core/errors.ts';
import type { Exec, ExecEvent, ExecRequest } from '../core/exec.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { FrameReader, encodeFrame } from '../lib/frames.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { GuestRefusal, REFUSAL_REASONS } from './guest-refusal.ts';

/** The guest sends 64 KiB at once, and a little more. */
const LONGEST_REPLY = 256 * 1024;
const CLOSE_MS = 2000;
const WORDS_BYTES = 1024;

export interface GuestParts {
  /** Runs a command in the cell. */
  readonly exec: (request: ExecRequest) => Promise<Exec>;
  /** The folder in the cell, made if it is not there. What is staged stands beside it for a moment. */
  readonly root: string;
  /** After so long a request has failed, and the guest is ended. */
  readonly timeoutMs: number;
}

export interface Reply {
  readonly type: string;
  readonly payload: Buffer;
}

/** The use of the guest for one operation. Nobody else is served meanwhile. */
export interface Turn {
  /** A number that no other turn has had. */
  readonly id: number;
  send(type: string, payload?: Uint8Array, id?: number): void;
  /** Throws what the guest refuses. `.` is the last reply to a request. */
  next(): Promise<Reply>;
  /** For a reply that makes no sense: the guest is ended. */
  nonsense(): HotcellError;
}

/** `guest/files.pl` in the cell: started when it is needed, again when it has died, and asked one thing after the other. */
export class FilesGuest {
  readonly #parts: GuestParts;
  readonly #turns = new Semaphore(1);
  #talk: Talk | undefined;
  #lastId = 0;

  constructor(parts: GuestParts) {
    this.#parts = parts;
  }

  run<T>(task: (turn: Turn) => Promise<T>): Promise<T> {
    return this.#turns.run(async () => {
      const used = this.#talk;
      const talk = await this.#start();
      try {
        return await this.#take(talk, task);
      } catch (error) {
        // It had ended since the last request, and nothing was done for this one.
        if (talk !== used || !talk.hasDiedSilent) throw error;
        return this.#take(await this.#start(), task);
      }
    });
  }

  async #take<T>(talk: Talk, task: (turn: Turn) => Promise<T>): Promise<T> {
    const id = ++this.#lastId;
    const deadline = startDeadline(this.#parts.timeoutMs);
    talk.begin();
    try {
      return await task({
        id,
        send: (type, payload, other = id) => talk.send(type, other, payload),
        next: () => talk.next(deadline.passed),
        nonsense: () => talk.nonsense(),
      });
    } finally {
      deadline.stop();
      // Whatever is still to come would be taken for the answer to the next request.
      if (!talk.isSettled) await talk.end();
    }
  }

  async #start(): Promise<Talk> {
    if (this.#talk !== undefined && !this.#talk.isOver) return this.#talk;
    await this.#talk?.end();
    this.#talk = undefined;
    const argv = ['perl', '{guest}/files.pl', this.#parts.root] as const;
    const starting = this.#parts.exec({ argv, env: {}, cwd: '/' }).then((exec) => new Talk(exec));
    const deadline = startDeadline(this.#parts.timeoutMs);
    try {
      this.#talk = await Promise.race([starting, deadline.passed]);
      return this.#talk;
    } catch (error) {
      // A program that starts too late is not wanted any more.
      void starting.then((talk) => talk.end()).catch(() => {});
      throw error;
    } finally {
      deadline.stop();
    }
  }

  /** After what is under way. A later request starts it again. */
  close(): Promise<void> {
    return this.#turns.run(async () => {
      await this.#talk?.close();
      this.#talk = undefined;
    });
  }
}

/** The streams of one process in the cell. SECURITY: everything that it says may come from somebody else. */
class Talk {
  readonly #exec: Exec;
  readonly #events: AsyncIterator<ExecEvent>;
  readonly #reader = new FrameReader(LONGEST_REPLY);
  readonly #words = new CappedBytes(WORDS_BYTES);
  #replies: { readonly id: number; readonly reply: Reply }[] = [];
  #taken = 0;
  #isEnded = false;
  #isBroken = false;
  #isSilent = true;
  #isForgotten = false;
  #current = 0;
  /** Nothing is to be expected from it. */
  isSettled = true;

  constructor(exec: Exec) {
    this.#exec = exec;
    this.#events = exec.events[Symbol.asyncIterator]();
    void exec.ended.then(() => (this.#isEnded = true));
  }

  begin(): void {
    this.#isSilent = true;
  }

  /** It ended without a word about the request that came last. */
  get hasDiedSilent(): boolean {
    return this.#isEnded && this.#isSilent;
  }

  get isOver(): boolean {
    return this.#isEnded || this.#isBroken;
  }

  send(type: string, id: number, payload?: Uint8Array): void {
    this.isSettled = false;
    this.#current = id;
    this.#exec.write(encodeFrame(type, id, payload));
  }

  async next(deadline: Promise<never>): Promise<Reply> {
    for (;;) {
      const found = this.#replies[this.#taken];
      if (found !== undefined) {
        this.#taken++;
        return this.#accept(found.id, found.reply);
      }
      this.#replies = [];
      this.#taken = 0;
      await this.#receive(deadline);
    }
  }

  #accept(id: number, reply: Reply): Reply {
    if (id !== this.#current) throw this.nonsense();
    if (reply.type === '.' || reply.type === '!') {
      this.isSettled = true;
      if (this.#replies.length > this.#taken) throw this.nonsense();
    }
    if (reply.type === '!') throw this.#toRefusal(reply.payload);
    return reply;
  }

  #toRefusal(payload: Buffer): Error {
    const reason = Object.entries(REFUSAL_REASONS).find(
      ([letter]) => letter === payload.toString('latin1', 0, 1),
    )?.[1];
    if (reason === undefined || payload.length !== 9) return this.nonsense();
    return new GuestRefusal(reason, payload.readUInt32BE(1), payload.readUInt32BE(5));
  }

  async #receive(deadline: Promise<never>): Promise<void> {
    let result: IteratorResult<ExecEvent>;
    try {
      result = await Promise.race([this.#events.next(), deadline]);
    } catch (error) {
      throw this.#lost('does not answer', error);
    }
    if (result.done === true || result.value.type === 'exit') {
      this.#isEnded = true;
      throw this.#lost('has ended', undefined);
    }
    const { type, bytes } = result.value;
    this.#isSilent = false;
    if (type === 'stderr') {
      this.#words.push(bytes);
      return;
    }
    try {
      for (const { type: letter, id, payload } of this.#reader.push(bytes)) {
        const { buffer, byteOffset, length } = payload;
        this.#replies.push({ id, reply: { type: letter, payload: Buffer.from(buffer, byteOffset, length) } });
      }
    } catch {
      throw this.nonsense();
    }
  }

  nonsense(): HotcellError {
    return this.#lost('makes no sense', undefined);
  }

  #lost(what: string, cause: unknown): HotcellError {
    this.#isBroken = true;
    this.isSettled = false;
    const words = this.#words.text().trim();
    const said = words === '' ? '' : ` (it said: ${JSON.stringify(words)})`;
    return new HotcellError('CELL_LOST', `the helper for files in the cell ${what}${said}`, {
      cause,
      hint: 'It is started anew with the next request. Send the request again.',
    });
  }

  async close(): Promise<void> {
    this.#isBroken = true;
    this.#exec.closeStdin();
    await isInTime(this.#drained(), CLOSE_MS);
    await this.end();
  }

  /** Kills it, if it has not ended yet. May be called twice. */
  async end(): Promise<void> {
    if (this.#isForgotten) return;
    this.#isForgotten = true;
    this.#isBroken = true;
    if (!this.#isEnded) {
      await this.#exec.kill('cancelled').catch(() => {});
      await isInTime(this.#drained(), CLOSE_MS);
    }
    this.#exec.lasting?.forget();
  }

  /** Reads to the end, so that nothing waits for us to take its output. */
  async #drained(): Promise<void> {
    try {
      while ((await this.#events.next()).done !== true);
    } catch {
      // The program is gone, which is all that matters here.
    }
    await this.#exec.ended;
    this.#isEnded = true;
  }
}

function startDeadline(ms: number): { readonly passed: Promise<never>; stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  const passed = new Promise<never>((_, reject) => {
    const late = new HotcellError(
      'CELL_LOST',
      `the helper for files in the cell did not answer within ${ms} ms`,
    );
    timer = setTimeout(() => reject(late), ms);
  });
  // Most often nobody waits for it any more.
  passed.catch(() => {});
  return { passed, stop: () => clearTimeout(timer) };
}

async function isInTime(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  const isDone = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return isDone;
}
