import { messageOf } from '../core/errors.ts';
import { ExecOutput } from './exec-output.ts';
import type { ExecSurroundings } from './exec-surroundings.ts';
import { CommandExec } from './session-exec.ts';
import type { ExecRow, UnreadableExec } from './stored-exec.ts';

/** The commands of a session that are remembered: in memory, in the store, and their output on disk. */
export class ExecTable {
  readonly #sessionId: string;
  readonly #around: ExecSurroundings;
  /** In order of their start. */
  readonly #execs = new Map<string, CommandExec>();
  readonly #living = new Set<CommandExec>();
  /** Ids of commands whose rows cannot be read. */
  readonly #unreadable = new Set<string>();
  #position = 0;
  #endedDiskBytes = 0;

  constructor(sessionId: string, around: ExecSurroundings) {
    this.#sessionId = sessionId;
    this.#around = around;
  }

  find(id: string): CommandExec | undefined {
    return this.#execs.get(id);
  }

  /** The row is kept, though nobody can read it. */
  isUnreadable(id: string): boolean {
    return this.#unreadable.has(id);
  }

  all(): CommandExec[] {
    return [...this.#execs.values()];
  }

  /** Commands that have not ended. */
  living(): CommandExec[] {
    return [...this.#living];
  }

  countRunningBeside(): number {
    let count = 0;
    for (const { identity } of this.#living) if (identity.kind !== 'foreground') count++;
    return count;
  }

  /** Adds a command that waits for its turn. */
  add(exec: CommandExec): void {
    this.#execs.set(exec.id, exec);
    this.#living.add(exec);
  }

  drop(exec: CommandExec): void {
    this.#execs.delete(exec.id);
    this.#living.delete(exec);
  }

  /** One that is about to begin: in the store before anything of it exists. */
  note(exec: CommandExec, facts: { variables: readonly string[]; reportChanges: boolean }): void {
    const { id, command, kind, timeoutMs } = exec.identity;
    this.#around.rows.add({
      id,
      session: this.#sessionId,
      position: ++this.#position,
      command,
      variables: facts.variables,
      kind,
      startedAt: exec.startedAt,
      deadline: exec.deadlineAt,
      facts: { timeoutMs: timeoutMs ?? null, reportChanges: facts.reportChanges },
    });
    this.add(exec);
  }

  /** Forgets a command that never began. */
  forget(exec: CommandExec): void {
    this.#around.rows.remove(exec.id);
    this.drop(exec);
  }

  /** Notes the end of a command: those that ended longest ago make room. */
  settle(exec: CommandExec): void {
    this.#living.delete(exec);
    this.#endedDiskBytes += exec.output.diskBytes;
    const { execsKept, output } = this.#around.settings;
    for (const old of this.#execs.values()) {
      const ended = this.#execs.size - this.#living.size;
      if (ended <= execsKept && this.#endedDiskBytes <= output.sessionBytes) return;
      if (old.state === 'ended' && old !== exec) this.#remove(old);
    }
  }

  #remove(exec: CommandExec): void {
    this.#endedDiskBytes -= exec.output.diskBytes;
    this.forget(exec);
    exec.output.remove().catch((error: unknown) => {
      this.#around.log.warn({ exec: exec.id, error: messageOf(error) }, 'output removal failed');
    });
  }

  /** What an earlier life of the server has left. */
  async restore(rows: readonly (ExecRow | UnreadableExec)[]): Promise<{ row: ExecRow; exec: CommandExec }[]> {
    const restored: { row: ExecRow; exec: CommandExec }[] = [];
    for (const row of rows) {
      this.#position = row.position;
      if ('problem' in row) {
        this.#unreadable.add(row.id);
        this.#around.log.error({ exec: row.id, error: row.problem }, 'exec record unreadable');
        continue;
      }
      const exec = await this.#revive(row);
      this.add(exec);
      if (exec.state === 'ended') {
        this.#living.delete(exec);
        this.#endedDiskBytes += exec.output.diskBytes;
      }
      restored.push({ row, exec });
    }
    return restored;
  }

  async #revive(row: ExecRow): Promise<CommandExec> {
    const { id, command, kind, result } = row;
    const identity = { id, command, kind, timeoutMs: row.facts.timeoutMs ?? undefined };
    if (result !== null) {
      const exec = new CommandExec(identity, this.#around, ExecOutput.recall(id, this.#around, result));
      exec.recall(row.started_at, result);
      return exec;
    }
    const exec = new CommandExec(identity, this.#around, await ExecOutput.reopen(id, this.#around));
    exec.goOn({
      startedAt: row.started_at,
      deadlineAt: row.deadline ?? undefined,
      timedOut: row.timed_out,
    });
    return exec;
  }
}
