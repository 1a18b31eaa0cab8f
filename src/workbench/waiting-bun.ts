import type { Exec, ExecEvent } from '../core/exec.ts';

/** A command that was started before, and what it says from now on. */
export interface StartedExec {
  readonly exec: Exec;
  readonly events: AsyncIterable<ExecEvent>;
}

type Step = Promise<IteratorResult<ExecEvent>>;

/** What guest/preload/waiting.ts says when it waits. */
const READY = 6;
const GO = Buffer.from('go\n');

/** One Bun that waits for its code. Whatever else it does before it is told to go on makes it useless. */
export class WaitingBun {
  /** False: it is of no use. */
  readonly ready: Promise<boolean>;
  readonly #starting: Promise<Exec>;
  #events: AsyncIterator<ExecEvent> | undefined;
  #next: Step | undefined;
  #isSpoiled = false;
  #isTaken = false;
  #ending: Promise<void> | undefined;

  constructor(starting: Promise<Exec>, packages: readonly string[]) {
    this.#starting = starting;
    this.ready = this.#attend(packages).catch(() => this.#spoil());
  }

  async #attend(packages: readonly string[]): Promise<boolean> {
    const exec = await this.#starting;
    const events = exec.events[Symbol.asyncIterator]();
    this.#events = events;
    exec.write(Buffer.from(`${JSON.stringify(packages)}\n`));
    const first = await events.next();
    if (!saysReady(first) || this.#ending !== undefined) return this.#spoil();
    this.#watch(events.next());
    return true;
  }

  /** Nothing may come until it is told to go on. */
  #watch(next: Step): void {
    this.#next = next;
    const spoil = (): void => {
      if (!this.#isTaken) this.#spoil();
    };
    next.then(spoil, spoil);
  }

  #spoil(): false {
    this.#isSpoiled = true;
    void this.end();
    return false;
  }

  /** To be called once it is ready: lets it load the code. What is written to it from now on is for the code. */
  async go(): Promise<StartedExec | undefined> {
    const exec = await this.#starting;
    const [events, next] = [this.#events, this.#next];
    if (this.#isSpoiled || this.#ending !== undefined || events === undefined || next === undefined)
      return undefined;
    this.#isTaken = true;
    exec.write(GO);
    return { exec, events: goOn(next, events) };
  }

  /** Resolves when nothing is left of it. */
  end(): Promise<void> {
    this.#ending ??= this.#kill();
    return this.#ending;
  }

  async #kill(): Promise<void> {
    try {
      const exec = await this.#starting;
      await exec.kill('cancelled');
      void this.#drain();
      await exec.ended;
      exec.lasting?.forget();
    } catch {
      // The cell is gone, and everything with it.
    }
  }

  /** What nobody reads could keep it from ending. */
  async #drain(): Promise<void> {
    try {
      while ((await this.#events?.next())?.done === false);
    } catch {
      // Bun has ended this way.
    }
  }
}

function saysReady({ value, done }: IteratorResult<ExecEvent>): boolean {
  return done !== true && value.type === 'stdout' && value.bytes.length === 1 && value.bytes[0] === READY;
}

async function* goOn(next: Step, events: AsyncIterator<ExecEvent>): AsyncGenerator<ExecEvent> {
  for (let step = await next; step.done !== true; step = await events.next()) yield step.value;
}
