import { attend, type ExitEvent } from '../cells/run-to-end.ts';
import { HotcellError, messageOf, toHotcellError } from '../core/errors.ts';
import type { Exec, TerminalSize } from '../core/exec.ts';
import type { ExecReport, ExecState, ExecView, OutputEvent, OutputPart, SessionExec } from './api.ts';
import { ExecDeadline } from './exec-deadline.ts';
import { toEndReport, toKilledEnd, toLostEnd, type EndReport, type KilledBy } from './exec-end.ts';
import type { ExecSurroundings } from './exec-surroundings.ts';
import { ExecOutput } from './exec-output.ts';
import type { ExecResult } from './stored-exec.ts';

/** What is known of a command before it begins. */
export interface ExecIdentity extends Pick<ExecView, 'id' | 'command' | 'kind'> {
  readonly timeoutMs: number | undefined;
}

/** What belongs into the result beside the end. */
export type EndFacts = Pick<ExecResult, 'cwd'> &
  Partial<Pick<ExecResult, 'cwdNote' | 'egressRefused' | 'changedFiles'>>;

/** `exit` is what the cell has told of the end, unless it is lost. */
export interface Ending {
  readonly report: EndReport;
  readonly exit?: ExitEvent;
}

/** Time for a server that is there to have ended a command itself. */
const CELL_LATER_MS = 10_000;
/** After a restart the cell gets time to say that a command ended by itself before its time was up. */
const SAY_SO_MS = 1000;

/** One command of a session: what was asked for, its output, its end. Who decides what it runs is `SessionCommands`. */
export class CommandExec implements SessionExec {
  readonly id: string;
  readonly result: Promise<ExecResult>;
  readonly identity: ExecIdentity;
  readonly output: ExecOutput;
  /** Aborted to take it out of the queue. */
  readonly unqueue = new AbortController();
  readonly #around: ExecSurroundings;
  readonly #deadline: ExecDeadline;
  readonly #settle: (result: ExecResult) => void;
  #startedAt: number;
  #deadlineAt: number | undefined;
  #state: ExecState = 'waiting';
  #ended: ExecResult | undefined;
  #running: Exec | undefined;
  #acceptsInput = false;
  #killedBy: KilledBy | undefined;
  #wasTimedOut = false;
  #isLetGo = false;
  #viewers = 0;

  constructor(identity: ExecIdentity, around: ExecSurroundings, output?: ExecOutput) {
    const { promise, resolve } = Promise.withResolvers<ExecResult>();
    this.id = identity.id;
    this.identity = identity;
    this.result = promise;
    this.#settle = resolve;
    this.#around = around;
    this.output = output ?? ExecOutput.create(identity.id, around);
    this.#startedAt = around.clock.now();
    this.#deadline = new ExecDeadline({
      clock: around.clock,
      graceMs: around.settings.graceMs,
      terminate: () => this.#terminate(),
      kill: () => this.#kill('wallTimeMs'),
    });
  }

  get state(): ExecState {
    return this.#state;
  }

  get startedAt(): number {
    return this.#startedAt;
  }

  get deadlineAt(): number | undefined {
    return this.#deadlineAt;
  }

  get killedBy(): KilledBy | undefined {
    return this.#killedBy;
  }

  /** People look at it at the moment. */
  get isWatched(): boolean {
    return this.#viewers > 0;
  }

  get outputBytes(): number {
    return this.output.bytes;
  }

  /** Its time begins. */
  begin(): void {
    this.#state = 'running';
    this.#startedAt = this.#around.clock.now();
    const { timeoutMs } = this.identity;
    this.#deadlineAt = timeoutMs === undefined ? undefined : this.#startedAt + timeoutMs;
  }

  /** It began in an earlier life of the server. */
  goOn(begun: { startedAt: number; deadlineAt: number | undefined; timedOut: boolean }): void {
    this.#state = 'running';
    this.#startedAt = begun.startedAt;
    this.#deadlineAt = begun.deadlineAt;
    this.#wasTimedOut = begun.timedOut;
  }

  /** It ended in an earlier life of the server. */
  recall(startedAt: number, result: ExecResult): void {
    this.#startedAt = startedAt;
    this.#complete(result);
  }

  /** Stays with a command of the cell until its end, and keeps its output; undefined when the server lets go of it. */
  async attend(
    exec: Exec,
    options: { acceptsInput: boolean; onlyStderr?: boolean },
  ): Promise<Ending | undefined> {
    this.#running = exec;
    this.#acceptsInput = options.acceptsInput;
    if (this.#deadline.isArmed) this.tellCell();
    if (this.#killedBy !== undefined) this.#kill('cancelled');
    try {
      const exit = await attend(exec, {
        onOutput: async (stream, bytes) => {
          const kept = await this.#keep(options.onlyStderr === true ? 'stderr' : stream, bytes);
          if (!kept) await this.kill('output_log');
        },
      });
      // One that comes after we have let go is for the next server.
      return this.#isLetGo ? undefined : { report: this.#toReport(exit), exit };
    } catch (error) {
      return this.#isLetGo ? undefined : { report: this.#toLostReport(error) };
    } finally {
      this.#running = undefined;
      this.#acceptsInput = false;
    }
  }

  async #keep(stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<boolean> {
    if (this.#killedBy === 'output_log') return true;
    try {
      await this.output.append(stream, bytes);
      return true;
    } catch (error) {
      this.#around.log.error({ exec: this.id, error: messageOf(error) }, 'output not stored');
      return false;
    }
  }

  #toLostReport(error: unknown): EndReport {
    if (this.#killedBy !== undefined) return toKilledEnd(this.#killedBy);
    const { code, message } = toHotcellError(error);
    if (code === 'CELL_LOST') return toLostEnd(this.#around.lostReason(), message);
    return toLostEnd('start_failed', message);
  }

  /** Its clock runs from now on; after a pause or a restart, too. */
  startClock(options: { resumed: boolean } = { resumed: false }): void {
    if (this.#deadlineAt !== undefined) this.#deadline.arm(this.#deadlineAt, options.resumed ? SAY_SO_MS : 0);
  }

  stopClock(): void {
    this.#deadline.stop();
  }

  /**
   * The cell keeps the deadline, too, for the case that no server is there by then: a while later, so that it never comes
   * before one. `isPaused`: there is none for now.
   */
  tellCell(isPaused = false): void {
    if (this.#deadlineAt === undefined) return;
    const { clock, settings } = this.#around;
    const afterMs = Math.max(0, this.#deadlineAt - clock.now()) + settings.graceMs + CELL_LATER_MS;
    this.#running?.endAfter?.(isPaused ? undefined : { afterMs, graceMs: settings.graceMs });
  }

  /** A pause does not count. */
  postpone(byMs: number): number | undefined {
    if (this.#deadlineAt !== undefined) this.#deadlineAt += byMs;
    return this.#deadlineAt;
  }

  #terminate(): void {
    this.#store('timeout', () => this.#around.rows.setTimedOut(this.id));
    this.#running?.terminate?.();
  }

  #kill(cause: 'wallTimeMs' | 'cancelled'): void {
    this.#running?.kill(cause).catch((error: unknown) => {
      this.#around.log.error({ exec: this.id, error: messageOf(error) }, 'exec kill failed');
    });
  }

  /** What the cell said about the end, in our words. */
  #toReport(exit: ExitEvent): EndReport {
    return toEndReport(exit.outcome, exit.usage, {
      killedBy: this.#killedBy,
      timedOut: this.#deadline.isReached || this.#wasTimedOut,
      timeoutMs: this.identity.timeoutMs,
      limits: this.#around.limits,
    });
  }

  /** The end, once everything about it is known. Stored before anybody hears of it; false when that failed. */
  end(report: EndReport, usage: ExitEvent['usage'] | undefined, facts: EndFacts): boolean {
    this.#deadline.stop();
    const { stderrBytes, bytes } = this.output;
    const result: ExecResult = {
      execId: this.id,
      ...report,
      cwdNote: null,
      egressRefused: [],
      ...facts,
      durationMs: Math.max(0, Math.round((this.#around.clock.now() - this.#startedAt) * 100) / 100),
      cpuTimeMs: usage?.cpuMs ?? 0,
      peakMemoryBytes: usage?.peakMemoryBytes ?? null,
      stdoutBytes: bytes - stderrBytes,
      stderrBytes,
    };
    const isStored =
      this.#state !== 'running' || this.#store('result', () => this.#around.rows.end(this.id, result));
    this.#complete(result);
    return isStored;
  }

  /** A disk that is full must not keep anybody waiting; what is lost with it is what a restart would have told. */
  #store(what: string, write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      this.#around.log.error({ exec: this.id, what, error: messageOf(error) }, 'exec not stored');
      return false;
    }
  }

  #complete(result: ExecResult): void {
    this.#state = 'ended';
    this.#ended = result;
    this.output.finish();
    this.#settle(result);
  }

  describe(): ExecView {
    const { id, kind, command } = this.identity;
    return {
      id,
      command,
      kind,
      startedAt: this.#startedAt,
      outputBytes: this.outputBytes,
      state: this.#state,
      result: this.#ended,
    };
  }

  async report(): Promise<ExecReport> {
    const texts = await this.output.texts(this.result);
    return { ...(await this.result), ...texts };
  }

  async *follow(from: number, signal: AbortSignal): AsyncGenerator<OutputEvent> {
    this.#viewers++;
    try {
      yield* this.output.follow(from, signal);
      if (signal.aborted || this.#isLetGo) return;
      const result = await this.result;
      yield { type: 'exit', from: this.outputBytes, result };
    } finally {
      this.#viewers--;
      this.#around.onLife();
    }
  }

  read(from: number, limitBytes: number): Promise<OutputPart> {
    return this.output.read(from, limitBytes, this.#ended);
  }

  write(bytes: Uint8Array): void {
    this.#requireInput().write(bytes);
  }

  closeStdin(): void {
    this.#requireInput().closeStdin();
    if (this.identity.kind !== 'terminal') this.#acceptsInput = false;
  }

  resize(size: TerminalSize): void {
    this.#requireInput().resize?.(size);
  }

  #requireInput(): Exec {
    this.#around.onLife();
    if (this.#state === 'ended') throw new HotcellError('EXEC_ENDED', `${this.id} has ended`);
    if (this.#running === undefined || !this.#acceptsInput) {
      throw new HotcellError('EXEC_ENDED', `the input of ${this.id} has ended`, {
        hint: 'Send all input as stdin of the request, or run the command in the background.',
      });
    }
    return this.#running;
  }

  kill(by: KilledBy = 'request'): Promise<void> {
    if (this.#state === 'ended') return Promise.resolve();
    this.#around.requireAwake();
    this.#killedBy ??= by;
    if (this.#state === 'waiting') this.unqueue.abort();
    return this.#running?.kill('cancelled') ?? Promise.resolve();
  }

  /** The session ends: one that waits is sent away with `error`, one that runs ends with the cell. */
  condemn(by: KilledBy | undefined, error: HotcellError): void {
    this.#killedBy ??= by;
    if (this.#state === 'waiting') this.unqueue.abort(error);
  }

  /** The server goes, the command stays. */
  letGo(): void {
    this.#isLetGo = true;
    this.#deadline.stop();
    this.output.letGo();
  }
}
