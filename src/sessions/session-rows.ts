import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import type { EndReason } from '../core/session-words.ts';
import { toIsoTime } from './iso-time.ts';
import type { NewSession } from './new-session.ts';
import { readSession, type SessionFacts, type SessionRow, type UnreadableSession } from './stored-session.ts';
import type { Statement } from './store-statement.ts';

const EndedRow = z.object({
  tenant: z.string(),
  ended_at: z.number(),
  end_reason: z.string(),
  end_message: z.string(),
});
export type EndedSession = z.infer<typeof EndedRow>;

export interface SessionEnd {
  readonly at: number;
  readonly reason: EndReason;
  readonly message: string;
}

/** What everybody gets who asks for a session that has ended. */
export function toEndedError(ended: EndedSession): HotcellError {
  const { end_reason: reason, end_message: message, ended_at: at } = ended;
  return new HotcellError('SESSION_ENDED', `the session ended at ${toIsoTime(at)} (${reason}): ${message}`);
}

/** Every statement about sessions. Those on the way of a command are prepared once. */
export class SessionRows {
  readonly #prepare: (sql: string) => Statement;
  readonly #setCwd: Statement;
  readonly #touch: Statement;
  readonly #ended: Statement;
  readonly #addHelper: Statement;
  readonly #removeHelper: Statement;

  constructor(prepare: (sql: string) => Statement) {
    this.#prepare = prepare;
    this.#setCwd = prepare('UPDATE sessions SET cwd = ? WHERE id = ?');
    this.#touch = prepare('UPDATE sessions SET touched_at = ? WHERE id = ?');
    this.#ended = prepare(
      'SELECT tenant, ended_at, end_reason, end_message FROM sessions WHERE id = ? AND ended_at IS NOT NULL',
    );
    this.#addHelper = prepare('INSERT INTO helpers VALUES (?, ?)');
    this.#removeHelper = prepare('DELETE FROM helpers WHERE session = ? AND number = ?');
  }

  /** Before anything of it exists, so that a crash leaves nothing unknown. */
  begin({ id, tenant, facts, allow }: NewSession, cwd: string): void {
    this.#prepare(
      "INSERT INTO sessions (id, tenant, state, facts, cwd, touched_at, allow) VALUES (?, ?, 'creating', ?, ?, ?, ?)",
    ).run(
      id,
      tenant,
      JSON.stringify(facts),
      cwd,
      facts.createdAt,
      allow === undefined ? null : JSON.stringify(allow),
    );
  }

  setFacts(id: string, facts: SessionFacts): void {
    this.#prepare('UPDATE sessions SET facts = ? WHERE id = ?').run(JSON.stringify(facts), id);
  }

  complete(id: string, cell: { readonly id: string; readonly record: string }): void {
    this.#prepare("UPDATE sessions SET state = 'running', cell_id = ?, record = ? WHERE id = ?").run(
      cell.id,
      cell.record,
      id,
    );
  }

  /** As if it had never been. */
  remove(id: string): void {
    this.#prepare('DELETE FROM sessions WHERE id = ?').run(id);
  }

  /** From now on it has ended for everybody; a crash from here on leaves work for the next start. */
  beginEnd(id: string, end: SessionEnd): void {
    this.#prepare(
      "UPDATE sessions SET state = 'ending', ended_at = ?, end_reason = ?, end_message = ? WHERE id = ?",
    ).run(end.at, end.reason, end.message, id);
  }

  /** Forgets all of a session but why it ended. */
  completeEnd(id: string): void {
    for (const table of ['execs', 'helpers', 'snapshots']) {
      this.#prepare(`DELETE FROM ${table} WHERE session = ?`).run(id);
    }
    this.#prepare(
      "UPDATE sessions SET state = 'ended', record = NULL, sync_index = NULL, allow = NULL WHERE id = ?",
    ).run(id);
  }

  /** All that are not over and done with. */
  living(): (SessionRow | UnreadableSession)[] {
    const rows = this.#prepare("SELECT * FROM sessions WHERE state <> 'ended'").all();
    return rows.map(readSession);
  }

  findEnded(id: string): EndedSession | undefined {
    const row = this.#ended.get(id);
    return row === undefined ? undefined : EndedRow.parse(row);
  }

  /** Keeps at most `most` ended sessions, and none that ended before `before`. */
  forgetEnded(before: number, most: number): void {
    this.#prepare("DELETE FROM sessions WHERE state = 'ended' AND ended_at < ?").run(before);
    this.#prepare(
      `DELETE FROM sessions WHERE state = 'ended' AND id NOT IN
           (SELECT id FROM sessions WHERE state = 'ended' ORDER BY ended_at DESC LIMIT ?)`,
    ).run(most);
  }

  setCwd(id: string, cwd: string): void {
    this.#setCwd.run(cwd, id);
  }

  touch(id: string, at: number): void {
    this.#touch.run(at, id);
  }

  setPaused(id: string, at: number | undefined): void {
    this.#prepare('UPDATE sessions SET state = ?, paused_at = ? WHERE id = ?').run(
      at === undefined ? 'running' : 'paused',
      at ?? null,
      id,
    );
  }

  setAllow(id: string, allow: readonly string[]): void {
    this.#prepare('UPDATE sessions SET allow = ? WHERE id = ?').run(JSON.stringify(allow), id);
  }

  setSyncIndex(id: string, index: string): void {
    this.#prepare('UPDATE sessions SET sync_index = ? WHERE id = ?').run(index, id);
  }

  /** Commands of ours beside those of the user, which a server after us has to end. */
  addHelper(id: string, number: number): void {
    this.#addHelper.run(id, number);
  }

  removeHelper(id: string, number: number): void {
    this.#removeHelper.run(id, number);
  }

  helpers(id: string): number[] {
    const rows = this.#prepare('SELECT number FROM helpers WHERE session = ?').all(id);
    return rows.map((row) => Number(row['number']));
  }

  clearHelpers(id: string): void {
    this.#prepare('DELETE FROM helpers WHERE session = ?').run(id);
  }

  /** Keeps the latest `most` snapshots of the session. */
  addSnapshot(id: string, snapshot: { cursor: string; at: number; content: string }, most: number): void {
    this.#prepare('INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)').run(
      id,
      snapshot.cursor,
      snapshot.at,
      snapshot.content,
    );
    this.#prepare(
      `DELETE FROM snapshots WHERE session = ? AND cursor NOT IN
           (SELECT cursor FROM snapshots WHERE session = ? ORDER BY taken_at DESC LIMIT ?)`,
    ).run(id, id, most);
  }

  findSnapshot(id: string, cursor: string): string | undefined {
    const row = this.#prepare('SELECT content FROM snapshots WHERE session = ? AND cursor = ?').get(
      id,
      cursor,
    );
    const content = row?.['content'];
    return typeof content === 'string' ? content : undefined;
  }
}
