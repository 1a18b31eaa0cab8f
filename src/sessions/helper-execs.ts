import { readOutcome } from '../cells/read-outcome.ts';
import { attend, runToEnd } from '../cells/run-to-end.ts';
import { requireLastingCell, requireLastingExec } from '../core/capabilities.ts';
import type { Cell } from '../core/cell.ts';
import type { Exec, ExecRequest } from '../core/exec.ts';
import { HotcellError, messageOf } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import { toSessionMark } from '../policy/audit-entry.ts';
import type { SessionRows } from './session-rows.ts';

const WORDS_KEPT = 1024;

export interface HelperParts {
  readonly sessionId: string;
  readonly cell: Cell;
  readonly rows: SessionRows;
  readonly log: Log;
  /** The cell was taken over: ours begin when those of the server before us have ended. */
  readonly inherits: boolean;
}

/**
 * Our own commands in a cell, beside those of the user. They are noted, because a server after us cannot go on with them:
 * it ends them and starts its own.
 */
export class HelperExecs {
  readonly #parts: HelperParts;
  readonly #inherited = Promise.withResolvers<void>();
  #isLetGo = false;

  constructor(parts: HelperParts) {
    this.#parts = parts;
    if (!parts.inherits) this.#inherited.resolve();
  }

  async start(request: ExecRequest): Promise<Exec> {
    const { cell, rows, sessionId } = this.#parts;
    await this.#inherited.promise;
    if (this.#isLetGo) throw new HotcellError('CANCELLED', 'the session was let go');
    const exec = await cell.exec(request);
    rows.addHelper(sessionId, requireLastingExec(exec).number);
    void exec.ended.then(() => this.#onEnded(exec));
    return exec;
  }

  #onEnded(exec: Exec): void {
    const { rows, sessionId, log } = this.#parts;
    if (this.#isLetGo) return;
    try {
      const lasting = requireLastingExec(exec);
      rows.removeHelper(sessionId, lasting.number);
      lasting.forget();
    } catch (error) {
      log.error({ session: toSessionMark(sessionId), error: messageOf(error) }, 'helper end not stored');
    }
  }

  /** Runs a short one to its end. Returns its exit code and what it said. */
  async run(request: ExecRequest, input?: Uint8Array): Promise<{ ok: boolean; words: string }> {
    const words = new CappedBytes(WORDS_KEPT);
    const started = { exec: (asked: ExecRequest) => this.start(asked) };
    const { outcome } = await runToEnd(started, request, { input, stdout: words, stderr: words });
    return { ok: readOutcome(outcome).ok, words: words.text() };
  }

  /** Ends those of the server before us, and commands that it had just started when it was killed. */
  async endInherited(lastKnown: number): Promise<void> {
    const { cell, rows, sessionId } = this.#parts;
    const noted = rows.helpers(sessionId);
    const first = Math.max(lastKnown, ...noted) + 1;
    const perhaps = Array.from({ length: JUST_STARTED }, (_, index) => first + index);
    const lasting = requireLastingCell(cell);
    await Promise.all([...noted, ...perhaps].map((number) => this.#endOne(lasting.resume(number, 0))));
    rows.clearHelpers(sessionId);
    this.#inherited.resolve();
  }

  async #endOne(exec: Exec | undefined): Promise<void> {
    if (exec === undefined) return;
    try {
      await exec.kill('cancelled');
      await attend(exec, {});
      exec.lasting?.forget();
    } catch (error) {
      const { log, sessionId } = this.#parts;
      log.warn({ session: toSessionMark(sessionId), error: messageOf(error) }, 'helper end failed');
    }
  }

  letGo(): void {
    this.#isLetGo = true;
    this.#inherited.resolve();
  }
}

/** How many commands a server can have started without having noted their numbers: one is usual, this is plenty. */
const JUST_STARTED = 16;
