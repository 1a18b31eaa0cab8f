import type { TerminalSize } from '../core/exec.ts';
import type { EgressReply } from '../wire/egress.ts';
import type {
  ExecReply,
  ExecResult,
  KillReply,
  OutputReply,
  SessionExecReply,
  SessionExecRequest,
} from '../wire/session-exec.ts';
import type {
  ApplyPatchReply,
  ChangesReply,
  FsReply,
  SyncReply,
  SyncRequest,
  UploadRequest,
} from '../wire/session-files.ts';
import type { CreateSessionRequest, SessionDetailReply, SessionReply } from '../wire/sessions.ts';
import type { Tenant } from '../policy/tenants.ts';

/** Who asks. A session is found only by the tenant who made it. */
export interface Caller {
  readonly tenant: Tenant;
}

/** The use case behind `/v1/sessions`. Every call throws HotcellError, and counts as a sign of life of the session. */
export interface Sessions {
  create(caller: Caller, request: CreateSessionRequest): Promise<SessionReply>;
  list(caller: Caller): SessionReply[];
  /** SESSION_UNKNOWN for what never was or is somebody else's, SESSION_ENDED with the reason for what was. */
  find(caller: Caller, id: string): Session;
}

export interface Session {
  describe(): SessionReply;
  detail(): Promise<SessionDetailReply>;
  destroy(): Promise<void>;
  keepAlive(): SessionReply;
  pause(): Promise<SessionReply>;
  resume(): Promise<SessionReply>;

  /** Resolves when the command has begun; with `on_busy: wait` that may take a while. `signal` takes it out of the queue. */
  exec(request: SessionExecRequest, signal: AbortSignal): Promise<SessionExec>;
  /** A shell, or another command, in a terminal. Runs beside other commands. */
  openTerminal(request: TerminalRequest): Promise<SessionExec>;
  execs(): ExecReply[];
  findExec(id: string): SessionExec;
  /** Ends every command in the foreground. */
  kill(): Promise<KillReply>;

  upload(request: UploadRequest): Promise<{ synced: number }>;
  sync(request: SyncRequest): Promise<SyncReply>;
  changes(since: string | undefined): Promise<ChangesReply>;
  read(path: string): Promise<FsReply>;
  archive(): Promise<AsyncIterable<Uint8Array>>;
  applyPatch(diff: string): Promise<ApplyPatchReply>;

  egress(): EgressReply;
  setEgress(allow: readonly string[]): Promise<EgressReply>;
}

export interface TerminalRequest {
  readonly size: TerminalSize;
  /** A login shell unless given. */
  readonly command?: string;
  readonly env: Readonly<Record<string, string>>;
}

/** One command of a session, running or ended, in this life of the server or an earlier one. */
export interface SessionExec {
  readonly id: string;
  describe(): ExecReply;
  /** Resolves when it has ended, for whatever reason; never rejects. */
  readonly result: Promise<ExecResult>;
  /** All output kept, as text, when it has ended. */
  reply(): Promise<SessionExecReply>;
  /** Everything from this byte on, also what is still to come; the last event is `exit`. Ends with `signal`. */
  follow(from: number, signal: AbortSignal): AsyncIterable<OutputEvent>;
  /** What there is at the moment, at most about `limitBytes`. */
  read(from: number, limitBytes: number): Promise<OutputReply>;
  /** Bytes written so far. */
  readonly outputBytes: number;
  write(bytes: Uint8Array): void;
  closeStdin(): void;
  resize(size: TerminalSize): void;
  kill(): Promise<void>;
}

export type OutputEvent =
  | { readonly type: 'stdout' | 'stderr'; readonly from: number; readonly bytes: Uint8Array }
  /** No longer kept. */
  | { readonly type: 'cut'; readonly from: number; readonly to: number }
  | { readonly type: 'exit'; readonly from: number; readonly result: ExecResult };
