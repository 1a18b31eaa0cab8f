import type { ExitEvent } from '../cells/run-to-end.ts';
import { requireLastingCell, requireLastingExec } from '../core/capabilities.ts';
import type { Cell } from '../core/cell.ts';
import { messageOf, toHotcellError } from '../core/errors.ts';
import type { Exec } from '../core/exec.ts';
import type { EgressRefusal } from '../core/egress-refusal.ts';
import { toKilledEnd, toLostEnd, type EndReport } from './exec-end.ts';
import {
  toCommandRequest,
  toEndCwd,
  toSetupRequest,
  type CommandBase,
  type CommandWish,
} from './exec-plan.ts';
import type { ExecSurroundings } from './exec-surroundings.ts';
import type { ExecTable } from './exec-table.ts';
import type { CommandExec, EndFacts } from './session-exec.ts';
import type { ChangedFile, ExecRow } from './stored-exec.ts';

/** What commands need to know of their session, and may change of it. */
export interface CommandsHost extends ExecSurroundings {
  readonly sessionId: string;
  readonly cell: Cell;
  readonly place: CommandBase;
  /** The set-up command of the template runs before commands. */
  readonly setup: boolean;
  cwd(): string;
  setCwd(cwd: string): void;
  /** Throws when no command can begin. */
  requireReady(): void;
  /** Undefined: there is nothing that commands have to wait for. */
  untilReady(): Promise<void> | undefined;
  /** Variables of .env, where the session asks for them. */
  dotenv(): Promise<Readonly<Record<string, string>>> | undefined;
  /** Looks at the files; the function says what has changed since. */
  watchFiles(): Promise<() => Promise<ChangedFile[]>>;
  /** Marks a moment; the function says which connections were refused since. */
  watchRefusals(): () => EgressRefusal[];
  onEnded(exec: CommandExec): void;
}

/** One command on its way, with what was asked for. */
export interface Launch {
  readonly exec: CommandExec;
  readonly wish: CommandWish;
  /** Begins there or not at all. */
  readonly insists: boolean;
  readonly stdin: string | undefined;
  readonly keepsInput: boolean;
  readonly reportChanges: boolean;
  readonly setup: boolean;
  readonly dotenv: boolean;
}

interface Started {
  readonly running: Exec;
  readonly changes: (() => Promise<ChangedFile[]>) | undefined;
  readonly refusals: () => EgressRefusal[];
}

const encoder = new TextEncoder();

/** Begins commands in the cell and stays with each of them to its end. */
export class ExecRunner {
  readonly #host: CommandsHost;
  readonly #table: ExecTable;

  constructor(host: CommandsHost, table: ExecTable) {
    this.#host = host;
    this.#table = table;
  }

  /** Resolves when it has begun; its end is looked after. */
  async launch(launch: Launch): Promise<void> {
    const { exec } = launch;
    let isNoted = false;
    try {
      this.#host.requireReady();
      exec.begin();
      this.#table.note(exec, {
        variables: Object.keys(launch.wish.env),
        reportChanges: launch.reportChanges,
      });
      isNoted = true;
      const ready = this.#host.untilReady();
      if (ready !== undefined) await ready;
      const refusals = this.#host.watchRefusals();
      const setup = launch.setup ? toSetupRequest(this.#host.place) : undefined;
      if (setup === undefined) {
        this.#watch(exec, this.#attend(launch, await this.#start(launch, refusals)));
        return;
      }
      const running = await this.#host.cell.exec(setup);
      this.#host.rows.begin(exec.id, {
        number: requireLastingExec(running).number,
        phase: 'setup',
        outputBase: 0,
      });
      running.closeStdin();
      exec.startClock();
      this.#watch(exec, this.#attendSetup(launch, running, refusals));
    } catch (error) {
      this.#failToStart(exec, error, isNoted);
    }
  }

  /** What the caller did wrong is told as an error; what went wrong with the cell is the end of the command. */
  #failToStart(exec: CommandExec, error: unknown, isNoted: boolean): void {
    // It did not begin: after a restart nobody would know of it, and after its end nobody could ask for it.
    if (exec.state === 'running' && !isNoted) {
      this.#table.drop(exec);
      throw error;
    }
    if (exec.state !== 'running' || toHotcellError(error).status < 500) {
      this.#table.forget(exec);
      throw error;
    }
    this.#end(exec, exec.killedBy === undefined ? this.#toLostEnd(error) : toKilledEnd(exec.killedBy));
  }

  #toLostEnd(error: unknown): EndReport {
    const { code, message } = toHotcellError(error);
    return toLostEnd(code === 'CELL_LOST' ? this.#host.lostReason() : 'start_failed', message);
  }

  async #start(launch: Launch, refusals: Started['refusals']): Promise<Started> {
    const { exec, wish, stdin } = launch;
    const { cell, place } = this.#host;
    const dotenv = launch.dotenv ? this.#host.dotenv() : undefined;
    const env = dotenv === undefined ? wish.env : { ...(await dotenv), ...wish.env };
    const changes = launch.reportChanges ? await this.#host.watchFiles() : undefined;
    const request = toCommandRequest(place, { ...wish, env });
    const running = await cell.exec(launch.insists ? { ...request, fallbackCwd: wish.cwd } : request);
    this.#host.rows.begin(exec.id, {
      number: requireLastingExec(running).number,
      phase: 'command',
      outputBase: exec.outputBytes,
    });
    if (stdin !== undefined && stdin !== '') running.write(encoder.encode(stdin));
    if (!launch.keepsInput) running.closeStdin();
    exec.startClock();
    return { running, changes, refusals };
  }

  async #attendSetup(launch: Launch, running: Exec, refusals: Started['refusals']): Promise<void> {
    const { exec } = launch;
    const ending = await exec.attend(running, { acceptsInput: false, onlyStderr: true });
    if (ending === undefined) return;
    running.lasting?.forget();
    const { report, exit } = ending;
    if (!report.ok || exec.killedBy !== undefined) {
      const failure = report.ok ? toKilledEnd(exec.killedBy ?? 'request') : toSetupFailure(report);
      this.#end(exec, failure, exit, { egressRefused: refusals() });
      return;
    }
    try {
      await this.#attend(launch, await this.#start(launch, refusals));
    } catch (error) {
      this.#end(exec, this.#toLostEnd(error));
    }
  }

  async #attend(
    launch: Pick<Launch, 'exec' | 'keepsInput'> & { wish: { cwd: string }; insists?: boolean },
    started: Started,
  ): Promise<void> {
    const { exec } = launch;
    const { running, changes, refusals } = started;
    const ending = await exec.attend(running, { acceptsInput: launch.keepsInput });
    if (ending === undefined) return;
    const { report, exit } = ending;
    const changedFiles = exit === undefined ? undefined : await this.#changesOf(exec, changes);
    const { place } = this.#host;
    const cwdNote =
      launch.insists === true
        ? `${launch.wish.cwd} cannot be entered; the command did not begin`
        : `${launch.wish.cwd} cannot be entered any more; the command began in ${place.workspace}`;
    const isStored = this.#end(exec, report, exit, {
      egressRefused: refusals(),
      changedFiles,
      cwdNote: exit?.fellBack === true ? cwdNote : null,
    });
    // Only now: what is noted need not be told again.
    if (isStored) running.lasting?.forget();
  }

  async #changesOf({ id }: CommandExec, changes: Started['changes']): Promise<ChangedFile[] | undefined> {
    try {
      return await changes?.();
    } catch (error) {
      this.#host.log.warn({ exec: id, error: messageOf(error) }, 'changed files unknown');
      return undefined;
    }
  }

  /** False: it could not be stored, so the cell must remember it. */
  #end(exec: CommandExec, report: EndReport, exit?: ExitEvent, facts: Omit<EndFacts, 'cwd'> = {}): boolean {
    const cwd = exec.identity.kind === 'foreground' ? toEndCwd(exit?.cwd) : undefined;
    if (cwd !== undefined && cwd !== this.#host.cwd()) this.#host.setCwd(cwd);
    const isStored = exec.end(report, exit?.usage, { ...facts, cwd: this.#host.cwd() });
    this.#table.settle(exec);
    this.#host.onEnded(exec);
    return isStored;
  }

  /** One that an earlier life of the server began: takes it up where its output ends, or ends it. */
  resume(row: ExecRow, exec: CommandExec, isPaused: boolean): void {
    const { cell } = this.#host;
    const running =
      row.number === null
        ? undefined
        : requireLastingCell(cell).resume(row.number, exec.outputBytes - row.output_base);
    if (running === undefined) {
      this.#end(exec, toLostEnd('server_restarted', 'the server was restarted before it knew of its end'));
      return;
    }
    if (!isPaused) exec.startClock({ resumed: true });
    if (row.phase === 'setup') return this.#watch(exec, this.#attendLateSetup(exec, running));
    const launch = { exec, keepsInput: row.kind !== 'foreground', wish: { cwd: 'its folder' } };
    this.#watch(
      exec,
      this.#attend(launch, { running, changes: undefined, refusals: this.#host.watchRefusals() }),
    );
  }

  /** The variables of the request went with the last server, so the command itself cannot follow. */
  async #attendLateSetup(exec: CommandExec, running: Exec): Promise<void> {
    const ending = await exec.attend(running, { acceptsInput: false, onlyStderr: true });
    if (ending === undefined) return;
    const { report, exit } = ending;
    const lost = toLostEnd(
      'server_restarted',
      'the server was restarted during the set-up command; send it again',
    );
    if (this.#end(exec, report.ok ? lost : toSetupFailure(report), exit)) running.lasting?.forget();
  }

  /** SECURITY: whatever goes wrong with one command must not end the server. */
  #watch({ id }: CommandExec, attended: Promise<void>): void {
    attended.catch((error: unknown) => {
      this.#host.log.error({ exec: id, error: messageOf(error) }, 'exec lost');
    });
  }
}

function toSetupFailure(report: EndReport): EndReport {
  const message = `the set-up command failed, so the command did not begin: ${report.end.message}`;
  return { ...report, ok: false, end: { ...report.end, message } };
}
