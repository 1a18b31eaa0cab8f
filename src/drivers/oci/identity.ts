import { randomInt } from 'node:crypto';
import type { CellIdentity } from './config-json.ts';
import { CELL_UID } from './rootfs.ts';

/** Host ids that no distribution gives to users or containers: two for each cell, root's and the program's. */
const FIRST = 0x70000000;
const COUNT = 0x07fffffe;

export interface HostIdentity extends CellIdentity {
  /** Who the program is on the host: owner of its FIFOs. */
  readonly hostId: number;
}

/**
 * A different host id for every cell, so that what the kernel counts by user (pipes, inotify, keys) is not shared.
 * Without root there is only one id to map: our own.
 */
export class IdentityRange {
  readonly #rootless: boolean;
  #next = randomInt(COUNT / 2) * 2;

  constructor(rootless: boolean) {
    this.#rootless = rootless;
  }

  next(): HostIdentity {
    if (this.#rootless) {
      // Seen from the helper namespace that the runtime is started in, our own id is 0.
      const mappings = [{ containerID: CELL_UID, hostID: 0, size: 1 }];
      return { uid: CELL_UID, mappings, hostId: process.geteuid?.() ?? 0 };
    }
    const base = FIRST + this.#next;
    this.#next = (this.#next + 2) % COUNT;
    const mappings = [
      { containerID: 0, hostID: base, size: 1 },
      { containerID: CELL_UID, hostID: base + 1, size: 1 },
    ];
    return { uid: CELL_UID, mappings, hostId: base + 1 };
  }
}
