import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { EndReason } from '../core/session-words.ts';
import type { SessionStore } from './session-store.ts';
import type { SessionRow } from './stored-session.ts';
import type { VolumeHolds } from './volume-holds.ts';
import type { VolumeKeep } from './volumes.ts';

/** Work is never thrown away by accident: only whoever deletes a session means it. */
const KEPT_AFTER: Readonly<Record<EndReason, VolumeKeep>> = {
  deleted: 'dependencies',
  expired: 'all',
  cell_lost: 'all',
  memory: 'all',
  host_restarted: 'all',
  create_failed: 'all',
};

export interface RemainsParts {
  readonly store: SessionStore;
  readonly holds: VolumeHolds;
  readonly log: Log;
}

/** What a session leaves when its cell is gone. */
export class SessionRemains {
  readonly #parts: RemainsParts;

  constructor(parts: RemainsParts) {
    this.#parts = parts;
  }

  outputFolderOf(sessionId: string): string {
    return join(this.#parts.store.outputFolder, toSessionMark(sessionId));
  }

  /** Removes all of it but the reason why it ended, and files that are kept. */
  async remove(sessionId: string, volumeKey: string | undefined, reason: EndReason): Promise<void> {
    if (volumeKey !== undefined) await this.#release(sessionId, volumeKey, KEPT_AFTER[reason]);
    await rm(this.outputFolderOf(sessionId), { recursive: true, force: true });
    this.#parts.store.sessions.completeEnd(sessionId);
  }

  /**
   * Of a session that was being made when the server was killed. Nobody has heard of it, so nothing in a volume that was
   * made for it is anybody's.
   */
  async forgetUnborn({ id, facts: { volumeKey, volumeFresh } }: SessionRow): Promise<void> {
    const { store, holds } = this.#parts;
    if (volumeFresh && !holds.keys().has(volumeKey)) await this.#release(id, volumeKey, 'nothing');
    store.sessions.remove(id);
  }

  async #release(sessionId: string, volumeKey: string, keep: VolumeKeep): Promise<void> {
    await this.#parts.holds.release(volumeKey, keep).catch((error: unknown) => {
      const session = toSessionMark(sessionId);
      this.#parts.log.error({ session, error: messageOf(error) }, 'volume release failed');
    });
  }
}
