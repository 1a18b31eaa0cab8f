import type { DatabaseSync, StatementSync } from 'node:sqlite';
import type { ExecResult } from './exec-result.ts';
import { readExec, type ExecFacts, type ExecKind, type ExecRow, type UnreadableExec } from './stored-exec.ts';

export interface NewExec {
  readonly id: string;
  readonly session: string;
  readonly position: number;
  readonly command: string;
  /** SECURITY: the names of the variables only; their values are never stored. */
  readonly variables: readonly string[];
  readonly kind: ExecKind;
  readonly startedAt: number;
  readonly deadline: number | undefined;
  readonly facts: ExecFacts;
}

/** Every statement about commands, prepared once: they are on the way of each command. */
export class ExecRows {
  readonly #db: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #begin: StatementSync;
  readonly #setDeadline: StatementSync;
  readonly #setTimedOut: StatementSync;
  readonly #end: StatementSync;
  readonly #remove: StatementSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare(
      `INSERT INTO execs (id, session, position, command, variables, kind, started_at, deadline, phase, output_base, facts)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'command', 0, ?)`,
    );
    this.#begin = db.prepare('UPDATE execs SET number = ?, phase = ?, output_base = ? WHERE id = ?');
    this.#setDeadline = db.prepare('UPDATE execs SET deadline = ? WHERE id = ?');
    this.#setTimedOut = db.prepare('UPDATE execs SET timed_out = 1 WHERE id = ?');
    this.#end = db.prepare('UPDATE execs SET result = ? WHERE id = ?');
    this.#remove = db.prepare('DELETE FROM execs WHERE id = ?');
  }

  /** Before the command starts. */
  add(exec: NewExec): void {
    this.#insert.run(
      exec.id,
      exec.session,
      exec.position,
      exec.command,
      JSON.stringify(exec.variables),
      exec.kind,
      exec.startedAt,
      exec.deadline ?? null,
      JSON.stringify(exec.facts),
    );
  }

  /** What the cell calls it, and where in the output of the exec that of this command begins. */
  begin(id: string, started: { number: number; phase: 'setup' | 'command'; outputBase: number }): void {
    this.#begin.run(started.number, started.phase, started.outputBase, id);
  }

  setDeadline(id: string, deadline: number): void {
    this.#setDeadline.run(deadline, id);
  }

  /** It was asked to end: whatever it says from now on, its time was up. */
  setTimedOut(id: string): void {
    this.#setTimedOut.run(id);
  }

  end(id: string, result: ExecResult): void {
    this.#end.run(JSON.stringify(result), id);
  }

  remove(id: string): void {
    this.#remove.run(id);
  }

  /** In order of their start. */
  of(session: string): (ExecRow | UnreadableExec)[] {
    const rows = this.#db.prepare('SELECT * FROM execs WHERE session = ? ORDER BY position').all(session);
    return rows.map(readExec);
  }
}
