/** Numbers that look random and are the same for the same seed, from 0 up to but not 1 (mulberry32). */
export type Dice = () => number;

export function makeDice(seed: number): Dice {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 up to but not `end`. */
export function below(dice: Dice, end: number): number {
  return Math.floor(dice() * end);
}

/** Cards are drawn until none is left, then all are shuffled again: each comes, and none comes too often. */
export class Deck<Card> {
  readonly #cards: readonly Card[];
  readonly #dice: Dice;
  #left: Card[] = [];

  constructor(counts: readonly (readonly [Card, number])[], dice: Dice) {
    this.#cards = counts.flatMap(([card, count]) => Array.from({ length: count }, () => card));
    this.#dice = dice;
  }

  draw(): Card {
    if (this.#left.length === 0) this.#left = [...this.#cards];
    const [card] = this.#left.splice(below(this.#dice, this.#left.length), 1);
    if (card === undefined) throw new RangeError('a deck without cards');
    return card;
  }
}
