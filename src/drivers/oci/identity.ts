import type { CellOwner } from '../../core/cell.ts';
import { HotcellError } from '../../core/errors.ts';
import { CELL_UID } from '../linux/cell-paths.ts';
import { UnusedIds } from '../linux/unused-ids.ts';
import type { CellIdentity } from './config-json.ts';

export interface HostIdentity extends CellIdentity {
  /** Who the program is on the host: owner of its FIFOs. */
  readonly host: CellOwner;
}

/** So many ids has a cell whose runs get one each. */
export const RANGE = 65_536;

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
      return { uid: CELL_UID, uidMappings: mappings, gidMappings: mappings, host: ownIds() };
    }
    const root = this.#ids.next();
    return toIdentity(root, { uid: root + 1, gid: root + 1 });
  }

  /** For a cell whose runs get an id each: it is root of so many. Precondition: we are root. */
  range(): HostIdentity {
    const first = this.#ids.next(RANGE);
    const mappings = [{ containerID: 0, hostID: first, size: RANGE }];
    return { uid: 0, uidMappings: mappings, gidMappings: mappings, host: { uid: first, gid: first } };
  }

  /** For a cell whose files are there already and belong to somebody. */
  of(owner: number): HostIdentity {
    // Such ids come in pairs; the one before that of the program is root's.
    return this.#rootless ? this.next() : toIdentity(owner - 1, { uid: owner, gid: owner });
  }

  /** For a cell that works in folders of somebody of the host. Precondition: that is not root. */
  as(owner: CellOwner): HostIdentity {
    if (!this.#rootless) return toIdentity(this.#idBeside(owner), owner);
    const { uid, gid } = ownIds();
    if (owner.uid === uid && owner.gid === gid) return this.next();
    throw new HotcellError(
      'POLICY_UNENFORCEABLE',
      `without root the programs of a cell can only be ${uid}:${gid}, and not ${owner.uid}:${owner.gid}`,
      { hint: 'Use folders that are your own, or run as root.' },
    );
  }

  /** SECURITY: the id before that of somebody may be somebody, so root inside gets one that nobody has. */
  #idBeside({ uid, gid }: CellOwner): number {
    const id = this.#ids.next();
    return id === uid || id === gid ? this.#ids.next() : id;
  }
}

function ownIds(): CellOwner {
  return { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
}

function toIdentity(root: number, host: CellOwner): HostIdentity {
  const toMappings = (id: number) => [
    { containerID: 0, hostID: root, size: 1 },
    { containerID: CELL_UID, hostID: id, size: 1 },
  ];
  return { uid: CELL_UID, uidMappings: toMappings(host.uid), gidMappings: toMappings(host.gid), host };
}
