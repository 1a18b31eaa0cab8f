import type { Fault } from '../plan.ts';
import type { World } from '../world.ts';

/** Does the harm and heals it; resolves when the server can do its work again. */
export type Harm = (world: World, fault: Fault) => Promise<void>;
