import { HotcellError } from '../core/errors.ts';
import { Turns } from '../core/turns.ts';
import type { CommandRequest, TerminalRequest } from './api.ts';
import { toKilledEnd, type KilledBy } from './exec-end.ts';
import { toCwd } from './exec-plan.ts';
import { ExecRunner, type CommandsHost, type Launch } from './exec-runner.ts';
import { ExecTable } from './exec-table.ts';
import { newExecId } from './ids.ts';
import { requireAtMost } from './new-session.ts';
import { CommandExec } from './session-exec.ts';
import type { SessionSettings } from './settings.ts';

/** The commands of one session: who runs, who waits, and what becomes of them. */
export class SessionCommands {
  readonly table: ExecTable;
  readonly #host: CommandsHost;
  readonly #turns = new Turns();
  readonly #runner: ExecRunner;

  constructor(host: CommandsHost) {
    this.#host = host;
    this.table = new ExecTable(host.sessionId, host);
    this.#runner = new ExecRunner(host, this.table);
  }

  /** Resolves when the command has begun. */
  async exec(request: CommandRequest, signal: AbortSignal): Promise<CommandExec> {
    this.#host.requireReady();
    const timeoutMs = toTimeoutMs(request.timeoutMs, this.#host.settings);
    const kind = request.background ? 'background' : 'foreground';
    const exec = new CommandExec({ id: newExecId(), command: request.command, kind, timeoutMs }, this.#host);
    if (request.background) {
      this.#requireRoomBeside();
      await this.#runner.launch(this.#toLaunch(exec, request));
      return exec;
    }
    if (!(await this.#waitForTurn(exec, request.onBusy, signal))) return exec;
    try {
      await this.#runner.launch(this.#toLaunch(exec, request));
      void exec.result.then(() => this.#turns.leave());
      return exec;
    } catch (error) {
      this.#turns.leave();
      throw error;
    }
  }

  async openTerminal(request: TerminalRequest): Promise<CommandExec> {
    this.#host.requireReady();
    this.#requireRoomBeside();
    const { size, env } = request;
    // Through a shell, so that it finds the same programs as commands do.
    const command = request.command ?? 'exec bash -i';
    const identity = { id: newExecId(), command, kind: 'terminal', timeoutMs: undefined } as const;
    const exec = new CommandExec(identity, this.#host);
    const wish = { command, cwd: this.#host.cwd(), env, terminal: size };
    await this.#runner.launch({ ...BESIDE, exec, wish });
    return exec;
  }

  #toLaunch(exec: CommandExec, request: CommandRequest): Launch {
    const { place, setup } = this.#host;
    return {
      exec,
      wish: {
        command: request.command,
        cwd: toCwd(request, { cwd: this.#host.cwd(), workspace: place.workspace }),
        env: request.env,
      },
      insists: request.cwd !== undefined,
      stdin: request.stdin,
      keepsInput: request.background && request.stdin === undefined,
      reportChanges: request.reportChanges,
      setup,
      dotenv: true,
    };
  }

  #requireRoomBeside(): void {
    const { beside } = this.#host.settings;
    if (this.table.countRunningBeside() < beside) return;
    throw new HotcellError(
      'SESSION_BUSY',
      `${beside} background commands and terminals run in this session already`,
    );
  }

  /** False: it was killed before its turn came. */
  async #waitForTurn(exec: CommandExec, onBusy: 'wait' | 'reject', signal: AbortSignal): Promise<boolean> {
    const both = this.#turns.isBusy ? AbortSignal.any([signal, exec.unqueue.signal]) : signal;
    const turn = this.#enter(onBusy, both);
    if (turn === undefined) return true;
    this.table.add(exec);
    try {
      await turn;
      return true;
    } catch (error) {
      this.table.drop(exec);
      if (exec.killedBy !== 'request') throw error;
      exec.end(toKilledEnd('request'), undefined, { cwd: this.#host.cwd() });
      return false;
    }
  }

  /** As `Turns.enter`; throws SESSION_BUSY for who does not want to wait, and where too many do. */
  #enter(onBusy: 'wait' | 'reject', signal: AbortSignal): Promise<void> | undefined {
    const { isBusy, waiting } = this.#turns;
    if (isBusy && onBusy === 'reject')
      throw new HotcellError('SESSION_BUSY', 'another command is running in this session');
    if (isBusy && waiting >= this.#host.settings.queue)
      throw new HotcellError('SESSION_BUSY', `${waiting} commands wait in this session already`);
    return this.#turns.enter(signal);
  }

  /** After a restart of the server: takes up what the cell still knows, and ends the rest. Returns the last number in use. */
  async restore(isPaused: boolean): Promise<number> {
    const rows = this.#host.rows.of(this.#host.sessionId);
    for (const { row, exec } of await this.table.restore(rows)) {
      if (exec.state === 'ended') continue;
      this.#runner.resume(row, exec, isPaused);
      if (row.kind === 'foreground' && this.#enter('reject', NEVER) === undefined) {
        void exec.result.then(() => this.#turns.leave());
      }
    }
    return Math.max(0, ...rows.map(({ number }) => number ?? 0));
  }

  /** Ends all commands in the foreground; returns their ids. */
  async killForeground(): Promise<string[]> {
    const execs = this.table.living().filter(({ identity }) => identity.kind === 'foreground');
    // Waiting commands first: they must not begin meanwhile.
    const inOrder = execs.toSorted(
      (one, other) => Number(other.state === 'waiting') - Number(one.state === 'waiting'),
    );
    await Promise.all(inOrder.map((exec) => exec.kill()));
    return execs.map(({ id }) => id);
  }

  /** The session ends: whoever waits is sent away with `error`, whoever runs ends with the cell. */
  condemn(by: KilledBy | undefined, error: HotcellError): void {
    for (const exec of this.table.living()) exec.condemn(by, error);
  }
}

const NEVER = new AbortController().signal;
const BESIDE = {
  insists: false,
  stdin: undefined,
  keepsInput: true,
  reportChanges: false,
  setup: false,
  dotenv: true,
} as const;

function toTimeoutMs(asked: number | undefined, settings: SessionSettings): number {
  requireAtMost('timeout_s', asked, settings.ceilings.timeoutMs, 1000);
  return asked ?? settings.timeoutMs;
}
