import { UnusedIds } from '../linux/unused-ids.ts';
import type { CellIdentity } from './config-json.ts';
import { CELL_UID } from './rootfs.ts';

export interface HostIdentity extends CellIdentity {
  /** Who the program is on the host: owner of its FIFOs. */
  readonly hostId: number;
}

/** Two host ids for every cell, root's and the program's. Without root there is only one id to map: our own. */
export class IdentityRange {
  readonly #rootless: boolean;
  readonly #ids = new UnusedIds();

  constructor(rootless: boolean) {
    this.#rootless = rootless;
  }

  next(): HostIdentity {
    if (this.#rootless) {
      // Seen from the helper namespace that the runtime is started in, our own id is 0.
      const mappings = [{ containerID: CELL_UID, hostID: 0, size: 1 }];
      return { uid: CELL_UID, mappings, hostId: process.geteuid?.() ?? 0 };
    }
    return toIdentity(this.#ids.next() + 1);
  }

  /** For a cell whose files are there already and belong to somebody. */
  of(owner: number): HostIdentity {
    return this.#rootless ? this.next() : toIdentity(owner);
  }
}

/** The id before that of the program is root's. */
function toIdentity(owner: number): HostIdentity {
  const mappings = [
    { containerID: 0, hostID: owner - 1, size: 1 },
    { containerID: CELL_UID, hostID: owner, size: 1 },
  ];
  return { uid: CELL_UID, mappings, hostId: owner };
}
