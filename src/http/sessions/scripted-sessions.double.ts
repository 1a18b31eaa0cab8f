import { HotcellError } from '../../core/errors.ts';
import type { Caller, Session, Sessions, TerminalRequest } from '../../sessions/api.ts';
import type { EgressReply } from '../../wire/egress.ts';
import type { ExecReply, KillReply, SessionExecRequest } from '../../wire/session-exec.ts';
import type {
  ApplyPatchReply,
  ChangesReply,
  FsReply,
  SyncReply,
  SyncRequest,
  UploadRequest,
} from '../../wire/session-files.ts';
import type { CreateSessionRequest, SessionDetailReply, SessionReply } from '../../wire/sessions.ts';
import {
  CHANGES_EXAMPLE,
  EGRESS_EXAMPLE,
  FS_EXAMPLE,
  PATCH_REPLY_EXAMPLE,
  SESSION_DETAIL_EXAMPLE,
  SESSION_EXAMPLE,
  SYNC_REPLY_EXAMPLE,
} from './openapi-session-examples.ts';
import { ScriptedExec } from './scripted-exec.double.ts';

/** The one session that there is. */
export const SESSION = 'session_1';

/** A use case that does what a test tells it and remembers what the door asked for. */
export class ScriptedSessions implements Sessions {
  readonly session = new ScriptedSession();
  readonly callers: string[] = [];
  readonly created: CreateSessionRequest[] = [];
  /** What the next calls throw. */
  failure: Error | undefined;

  create(caller: Caller, request: CreateSessionRequest): Promise<SessionReply> {
    this.#meet(caller);
    this.created.push(request);
    return Promise.resolve({ ...SESSION_EXAMPLE, session_id: SESSION });
  }

  list(caller: Caller): SessionReply[] {
    this.#meet(caller);
    return [SESSION_EXAMPLE];
  }

  find(caller: Caller, id: string): Session {
    this.#meet(caller);
    if (id === 'session_old') throw new HotcellError('SESSION_ENDED', 'the session ended: no request came');
    if (id !== SESSION) throw new HotcellError('SESSION_UNKNOWN', 'there is no such session');
    return this.session;
  }

  #meet({ tenant }: Caller): void {
    this.callers.push(tenant.name);
    if (this.failure !== undefined) throw this.failure;
  }
}

export class ScriptedSession implements Session {
  readonly calls: unknown[][] = [];
  readonly commands = new Map<string, ScriptedExec>();
  /** What a call of this name throws. */
  failing: Readonly<Record<string, Error>> = {};
  /** Called with every command that begins. */
  onExec: (exec: ScriptedExec, signal: AbortSignal) => void | Promise<void> = (exec) => exec.end();
  beforeTerminal: () => Promise<void> = () => Promise.resolve();
  chunks: () => AsyncIterable<Uint8Array> = async function* chunks() {
    yield await Promise.resolve(Buffer.from('a tar'));
  };

  describe(): SessionReply {
    return SESSION_EXAMPLE;
  }

  detail(): Promise<SessionDetailReply> {
    return this.#answer(SESSION_DETAIL_EXAMPLE, 'detail');
  }

  async destroy(): Promise<void> {
    await this.#answer(undefined, 'destroy');
  }

  keepAlive(): SessionReply {
    this.#call('keepAlive');
    return SESSION_EXAMPLE;
  }

  pause(): Promise<SessionReply> {
    return this.#answer({ ...SESSION_EXAMPLE, state: 'paused' as const }, 'pause');
  }

  resume(): Promise<SessionReply> {
    return this.#answer(SESSION_EXAMPLE, 'resume');
  }

  async exec(request: SessionExecRequest, signal: AbortSignal): Promise<ScriptedExec> {
    this.#call('exec', request);
    const exec = this.addExec({ background: request.background });
    await this.onExec(exec, signal);
    return exec;
  }

  async openTerminal(request: TerminalRequest): Promise<ScriptedExec> {
    this.#call('openTerminal', request);
    await this.beforeTerminal();
    return this.addExec({ terminal: true });
  }

  /** A command that runs and says nothing yet. */
  addExec(options: { background?: boolean; terminal?: boolean } = {}): ScriptedExec {
    const exec = new ScriptedExec(`exec_${this.commands.size + 1}`, options);
    this.commands.set(exec.id, exec);
    return exec;
  }

  execs(): ExecReply[] {
    return [...this.commands.values()].map((exec) => exec.describe());
  }

  findExec(id: string): ScriptedExec {
    const exec = this.commands.get(id);
    if (exec === undefined) throw new HotcellError('EXEC_UNKNOWN', 'there is no such command');
    return exec;
  }

  kill(): Promise<KillReply> {
    return this.#answer({ killed: false, exec_ids: [] }, 'kill');
  }

  upload(request: UploadRequest): Promise<{ synced: number }> {
    return this.#answer({ synced: request.files.length }, 'upload', request);
  }

  sync(request: SyncRequest): Promise<SyncReply> {
    return this.#answer(SYNC_REPLY_EXAMPLE, 'sync', request);
  }

  changes(since: string | undefined): Promise<ChangesReply> {
    return this.#answer(CHANGES_EXAMPLE, 'changes', since);
  }

  read(path: string): Promise<FsReply> {
    return this.#answer(FS_EXAMPLE, 'read', path);
  }

  archive(): Promise<AsyncIterable<Uint8Array>> {
    return this.#answer(this.chunks(), 'archive');
  }

  applyPatch(diff: string): Promise<ApplyPatchReply> {
    return this.#answer(PATCH_REPLY_EXAMPLE, 'applyPatch', diff);
  }

  egress(): EgressReply {
    this.#call('egress');
    return EGRESS_EXAMPLE;
  }

  setEgress(allow: readonly string[]): Promise<EgressReply> {
    return this.#answer({ ...EGRESS_EXAMPLE, allow: [...allow] }, 'setEgress', allow);
  }

  #call(name: string, ...parameters: unknown[]): void {
    const failure = this.failing[name];
    if (failure !== undefined) throw failure;
    this.calls.push([name, ...parameters]);
  }

  #answer<Reply>(reply: Reply, name: string, ...parameters: unknown[]): Promise<Reply> {
    this.#call(name, ...parameters);
    return Promise.resolve(reply);
  }
}
