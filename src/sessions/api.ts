import type { CellUsage, Isolation } from '../core/cell.ts';
import type { TerminalSize } from '../core/exec.ts';
import type { Limits } from '../core/limits.ts';
import type { RuntimeType } from '../core/session-words.ts';
import type { EgressReport } from '../egress/way-out.ts';
import type { Tenant } from '../policy/tenants.ts';
import type {
  FileChange,
  PatchedFile,
  PathContent,
  SentFile,
  SyncReport,
  SyncWish,
} from '../workspace/files.ts';
import type { OutputPiece, OutputStream } from './output-records.ts';
import type { ExecKind, ExecResult } from './stored-exec.ts';

export type { EgressReport, PatchedFile, PathContent, SentFile, SyncReport, SyncWish };

/** Who asks. A session is found only by the tenant who made it. */
export interface Caller {
  readonly tenant: Tenant;
}

/** The use case behind `/v1/sessions`. Every call throws HotcellError, and counts as a sign of life of the session. */
export interface Sessions {
  create(caller: Caller, request: SessionRequest): Promise<SessionView>;
  list(caller: Caller): SessionView[];
  /**
   * SESSION_UNKNOWN for what never was or is somebody else's, SESSION_ENDED with the reason for what was, and
   * SESSION_UNREACHABLE for what could not be taken over from the server before us.
   */
  find(caller: Caller, id: string): Session;
}

/** Limits that a session may ask for. */
export type SessionLimits = Pick<Limits, 'cpus' | 'memoryBytes' | 'diskBytes' | 'processes'>;

export interface SessionRequest {
  readonly project: string;
  readonly runtime: RuntimeType;
  readonly user?: string | undefined;
  /** `true`: the operator's list; or host names and presets. */
  readonly network: boolean | readonly string[];
  /** Load .env of the workspace into every command. */
  readonly dotenv: boolean;
  /** Run the set-up command of the template before a command whenever its manifest has changed. */
  readonly setup: boolean;
  /** Time without a request until it ends. */
  readonly ttlMs?: number | undefined;
  readonly limits: { readonly [Name in keyof SessionLimits]?: number | undefined };
}

export interface SessionView {
  /** A secret: whoever has it may use the session. */
  readonly id: string;
  readonly project: string;
  readonly user: string | null;
  readonly runtime: RuntimeType;
  readonly state: 'running' | 'paused';
  readonly workspace: string;
  /** Where the next command begins. */
  readonly cwd: string;
  readonly createdAt: number;
  /** When it ends unless a request comes. */
  readonly expiresAt: number;
  readonly expiresSoon: boolean;
  /** Hosts that can be reached. */
  readonly network: readonly string[];
  readonly limits: SessionLimits;
  /** `volume`: dependencies outlive the session. */
  readonly storage: 'volume' | 'memory';
  /** What this kind of project is usually run with. */
  readonly defaultCommand: string;
  readonly isolation: Isolation;
}

export interface SessionDetail extends SessionView {
  readonly usage: CellUsage & {
    readonly diskBytes: number | undefined;
    /** Ids of the commands under way. */
    readonly running: readonly string[];
  };
}

export interface Session {
  describe(): SessionView;
  detail(): Promise<SessionDetail>;
  destroy(): Promise<void>;
  keepAlive(): SessionView;
  pause(): Promise<SessionView>;
  resume(): Promise<SessionView>;

  /** Resolves when the command has begun; with `onBusy: wait` that may take a while. `signal` takes it out of the queue. */
  exec(request: CommandRequest, signal: AbortSignal): Promise<SessionExec>;
  /** A shell, or another command, in a terminal. Runs beside other commands. */
  openTerminal(request: TerminalRequest): Promise<SessionExec>;
  execs(): ExecView[];
  findExec(id: string): SessionExec;
  /** Ends every command in the foreground; resolves with their ids. */
  kill(): Promise<string[]>;

  /** All of it or nothing. */
  upload(files: readonly SentFile[]): Promise<void>;
  sync(wish: SyncWish): Promise<SyncReport>;
  changes(since: string | undefined): Promise<Changes>;
  read(path: string): Promise<PathContent>;
  archive(): Promise<AsyncIterable<Uint8Array>>;
  applyPatch(diff: string): Promise<PatchedFile[]>;

  /** Undefined: it was made without a network, and that cannot be changed. */
  egress(): EgressReport | undefined;
  setEgress(allow: readonly string[]): Promise<EgressReport>;
}

export interface Changes {
  /** For the next `since`. */
  readonly cursor: string;
  readonly changes: readonly FileChange[];
}

export interface CommandRequest {
  /** For `bash -c`. */
  readonly command: string;
  readonly timeoutMs?: number | undefined;
  /** Begin in the workspace again. */
  readonly resetCwd: boolean;
  /** Begin here; relative to the current folder of the session. */
  readonly cwd?: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  /** All of its standard input. */
  readonly stdin?: string | undefined;
  /** Beside other commands, with an input that stays open. */
  readonly background: boolean;
  readonly onBusy: 'wait' | 'reject';
  /** Tell which files it changed. */
  readonly reportChanges: boolean;
}

export interface TerminalRequest {
  readonly size: TerminalSize;
  /** A login shell unless given. */
  readonly command?: string;
  readonly env: Readonly<Record<string, string>>;
}

export type ExecState = 'waiting' | 'running' | 'ended';

export interface ExecView {
  readonly id: string;
  readonly command: string;
  readonly kind: ExecKind;
  readonly startedAt: number;
  /** Of stdout and stderr so far, also of those no longer kept. */
  readonly outputBytes: number;
  readonly state: ExecState;
  /** Once it has ended. */
  readonly result: ExecResult | undefined;
}

/** The result of a command with its output as text, cut in the middle where it is long. */
export interface ExecReport extends ExecResult {
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of both that are in neither. */
  readonly cutBytes: number;
}

/** A part of the output. */
export interface OutputPart {
  readonly from: number;
  /** Where the next part begins. */
  readonly next: number;
  readonly chunks: readonly {
    readonly stream: OutputStream;
    readonly from: number;
    readonly bytes: Uint8Array;
  }[];
  /** What is no longer kept of the range. */
  readonly cut: readonly { readonly from: number; readonly to: number }[];
  /** With the last part of a command that has ended. */
  readonly result: ExecResult | undefined;
}

/** One command of a session, running or ended, in this life of the server or an earlier one. */
export interface SessionExec {
  readonly id: string;
  describe(): ExecView;
  /** Resolves when it has ended, for whatever reason; never rejects. */
  readonly result: Promise<ExecResult>;
  /** All output kept, as text, when it has ended. */
  report(): Promise<ExecReport>;
  /** Everything from this byte on, also what is still to come; the last event is `exit`. Ends with `signal`. */
  follow(from: number, signal: AbortSignal): AsyncIterable<OutputEvent>;
  /** What there is at the moment, at most about `limitBytes`. */
  read(from: number, limitBytes: number): Promise<OutputPart>;
  /** Bytes written so far. */
  readonly outputBytes: number;
  write(bytes: Uint8Array): void;
  closeStdin(): void;
  resize(size: TerminalSize): void;
  kill(): Promise<void>;
}

export type OutputEvent =
  OutputPiece | { readonly type: 'exit'; readonly from: number; readonly result: ExecResult };
