import { requireLasting } from '../core/capabilities.ts';
import type { Driver } from '../core/driver.ts';
import { messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import { toIsoTime } from './iso-time.ts';
import type { LiveSession } from './session.ts';

interface EndParts {
  readonly driver: Driver;
  /** The id of the store that has them. */
  readonly store: string;
  readonly log: Log;
  end(sessionId: string): Promise<void>;
}

const TO_END_THEM = 'To end them: hotcell down';

/** Ends all sessions. Counted is what the driver no longer has, not what was asked of it. */
export async function endSessions(live: readonly LiveSession[], parts: EndParts): Promise<void> {
  const { log } = parts;
  const ends = await Promise.allSettled(live.map(({ id }) => parts.end(id)));
  const left = await cellsLeft(parts);
  let ended = 0;
  for (const [at, { id, parts: made }] of live.entries()) {
    const cell = made.cell.id;
    const end = ends[at];
    const failure = end?.status === 'rejected' ? messageOf(end.reason) : whyLeft(cell, left);
    if (failure === undefined) ended++;
    else {
      const hint = 'To end it: hotcell down';
      log.error({ session: toSessionMark(id), cell, error: failure, hint }, 'session end failed');
    }
    left?.delete(cell);
  }
  log.info({ sessions: ended }, 'sessions ended');
  // Of sessions that this server could not take over, for one.
  if (left !== undefined && left.size > 0)
    log.error({ cells: [...left], hint: TO_END_THEM }, 'other cells left');
}

/** Undefined when the driver cannot tell. */
async function cellsLeft({ driver, store, log }: EndParts): Promise<Set<string> | undefined> {
  try {
    const cells = await requireLasting(driver).list();
    return new Set(cells.filter((cell) => cell.store === store).map(({ id }) => id));
  } catch (error) {
    log.error({ error: messageOf(error), hint: TO_END_THEM }, 'cells not listed');
    return undefined;
  }
}

function whyLeft(cell: string, left: ReadonlySet<string> | undefined): string | undefined {
  if (left === undefined) return 'its cell may still be there';
  return left.has(cell) ? 'its cell could not be removed' : undefined;
}

interface LeaveParts {
  readonly log: Log;
  /** Sessions that this server could not take over. */
  readonly unreachable: number;
}

/** Leaves all sessions to the next server, and says when they are gone if none comes. */
export function leaveSessions(live: readonly LiveSession[], { log, unreachable }: LeaveParts): void {
  const awake = live.filter(({ life }) => !life.isPaused);
  const paused = live.length - awake.length;
  const until = Math.max(...awake.map(({ life, commands }) => life.cellEndsAt(commands.table)));
  if (awake.length > 0) log.info({ sessions: awake.length, until: toIsoTime(until) }, 'sessions kept');
  // What is frozen cannot keep its own time.
  if (paused > 0)
    log.warn(
      { sessions: paused, hint: 'They wait until a server or hotcell down ends them' },
      'paused sessions kept',
    );
  if (unreachable > 0) log.warn({ sessions: unreachable, hint: TO_END_THEM }, 'unreachable sessions kept');
  for (const session of live) session.letGo();
}
