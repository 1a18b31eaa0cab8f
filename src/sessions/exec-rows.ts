import type { ExecView } from './api.ts';
import {
  readExec,
  type ExecFacts,
  type ExecResult,
  type ExecRow,
  type UnreadableExec,
} from './stored-exec.ts';
import type { Statement } from './store-statement.ts';

export interface NewExec extends Pick<ExecView, 'id' | 'command' | 'kind' | 'startedAt'> {
  readonly session: string;
  readonly position: number;
  /** SECURITY: the names of the variables only; their values are never stored. */
  readonly variables: readonly string[];
  readonly deadline: number | undefined;
  readonly facts: ExecFacts;
}

/** Every statement about commands, prepared once: they are on the way of each command. */
export class ExecRows {
  readonly #prepare: (sql: string) => Statement;
  readonly #insert: Statement;
  readonly #begin: Statement;
  readonly #setDeadline: Statement;
  readonly #setTimedOut: Statement;
  readonly #end: Statement;
  readonly #remove: Statement;

  constructor(prepare: (sql: string) => Statement) {
    this.#prepare = prepare;
    this.#insert = prepare(
      `INSERT INTO execs (id, session, position, command, variables, kind, started_at, deadline, phase, output_base, facts)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'command', 0, ?)`,
    );
    this.#begin = prepare('UPDATE execs SET number = ?, phase = ?, output_base = ? WHERE id = ?');
    this.#setDeadline = prepare('UPDATE execs SET deadline = ? WHERE id = ?');
    this.#setTimedOut = prepare('UPDATE execs SET timed_out = 1 WHERE id = ?');
    this.#end = prepare('UPDATE execs SET result = ? WHERE id = ?');
    this.#remove = prepare('DELETE FROM execs WHERE id = ?');
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
    const rows = this.#prepare('SELECT * FROM execs WHERE session = ? ORDER BY position').all(session);
    return rows.map(readExec);
  }
}
