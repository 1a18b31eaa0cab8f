import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { Wanted } from './allow-list.ts';

/** Who wants to go where. */
export interface Asked extends Wanted {
  readonly client: Duplex;
}

/** A connection that was let through, from the moment it was. */
class Passage {
  readonly asked: Asked;
  #server: Socket | undefined;

  constructor(asked: Asked) {
    this.asked = asked;
  }

  /** Takes the connection to the outside; or ends it, because nobody is there any more to use it. */
  attach(server: Socket): boolean {
    this.#server = server;
    if (this.asked.client.destroyed) server.destroy();
    return !server.destroyed;
  }

  get isOver(): boolean {
    return this.#server?.destroyed === true;
  }

  end(): void {
    this.asked.client.destroy();
    this.#server?.destroy();
  }
}

/** Those of one way out that are open. */
export class Passages {
  readonly #open = new Set<Passage>();

  open(asked: Asked): Passage {
    const passage = new Passage(asked);
    this.#open.add(passage);
    asked.client.once('close', () => this.#open.delete(passage));
    return passage;
  }

  /** It came to nothing. */
  forget(passage: Passage): void {
    this.#open.delete(passage);
  }

  all(): Passage[] {
    return [...this.#open].filter(({ isOver }) => !isOver);
  }
}
