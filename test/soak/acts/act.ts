import type { Act } from '../plan.ts';
import type { World } from '../world.ts';

/** One thing that a caller does. It fails if the server does not do as it should. */
export type Perform = (world: World, act: Act) => Promise<void>;

/** Chooses by the dice of the act. */
export function choose<Item>(items: readonly Item[], dice: number): Item {
  const item = items[Math.floor(dice * items.length)];
  if (item === undefined) throw new RangeError('nothing to choose from');
  return item;
}
