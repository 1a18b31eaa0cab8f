import { HotcellError } from '../../core/errors.ts';
import type {
  Caller,
  Changes,
  CommandRequest,
  EgressReport,
  ExecView,
  PatchedFile,
  PathContent,
  SentFile,
  Session,
  SessionDetail,
  SessionRequest,
  Sessions,
  SessionView,
  SyncReport,
  SyncWish,
  TerminalRequest,
} from '../../sessions/api.ts';
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

const MiB = 1024 * 1024;

/** What the examples of the documents say, in the words of the use case. */
const VIEW: SessionView = {
  id: SESSION_EXAMPLE.session_id,
  project: 'proj_abc123',
  user: null,
  runtime: 'node',
  state: 'running',
  workspace: '/workspace/proj_abc123',
  cwd: '/workspace/proj_abc123',
  createdAt: Date.parse(SESSION_EXAMPLE.created_at),
  expiresAt: Date.parse(SESSION_EXAMPLE.expires_at),
  expiresSoon: false,
  network: [],
  limits: { cpus: 1, memoryBytes: 2048 * MiB, diskBytes: 512 * MiB, processes: 64 },
  storage: 'volume',
  defaultCommand: 'npm test',
  isolation: SESSION_EXAMPLE.isolation,
};

const DETAIL: SessionDetail = {
  ...VIEW,
  usage: {
    cpuMs: 812.5,
    memoryBytes: 41_943_040,
    processes: 3,
    diskBytes: 1_048_576,
    running: SESSION_DETAIL_EXAMPLE.usage.running,
  },
};

const { allow, hosts, refusals } = EGRESS_EXAMPLE;
const EGRESS: EgressReport = { allow, hosts, allowedCount: 2, refusedCount: 1, refusals };

/** The one session that there is. */
export const SESSION = 'session_1';

/** A use case that does what a test tells it and remembers what the door asked for. */
export class ScriptedSessions implements Sessions {
  readonly session = new ScriptedSession();
  readonly callers: string[] = [];
  readonly created: SessionRequest[] = [];
  /** What the next calls throw. */
  failure: Error | undefined;

  create(caller: Caller, request: SessionRequest): Promise<SessionView> {
    this.#meet(caller);
    this.created.push(request);
    return Promise.resolve({ ...VIEW, id: SESSION });
  }

  list(caller: Caller): SessionView[] {
    this.#meet(caller);
    return [VIEW];
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

  describe(): SessionView {
    return VIEW;
  }

  detail(): Promise<SessionDetail> {
    return this.#answer(DETAIL, 'detail');
  }

  async destroy(): Promise<void> {
    await this.#answer(undefined, 'destroy');
  }

  keepAlive(): SessionView {
    this.#call('keepAlive');
    return VIEW;
  }

  pause(): Promise<SessionView> {
    return this.#answer({ ...VIEW, state: 'paused' as const }, 'pause');
  }

  resume(): Promise<SessionView> {
    return this.#answer(VIEW, 'resume');
  }

  async exec(request: CommandRequest, signal: AbortSignal): Promise<ScriptedExec> {
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
  addExec({ background = false, terminal = false } = {}): ScriptedExec {
    const exec = new ScriptedExec(
      `exec_${this.commands.size + 1}`,
      terminal ? 'terminal' : background ? 'background' : 'foreground',
    );
    this.commands.set(exec.id, exec);
    return exec;
  }

  execs(): ExecView[] {
    return [...this.commands.values()].map((exec) => exec.describe());
  }

  findExec(id: string): ScriptedExec {
    const exec = this.commands.get(id);
    if (exec === undefined) throw new HotcellError('EXEC_UNKNOWN', 'there is no such command');
    return exec;
  }

  kill(): Promise<string[]> {
    return this.#answer([], 'kill');
  }

  async upload(files: readonly SentFile[]): Promise<void> {
    await this.#answer(undefined, 'upload', files);
  }

  sync(wish: SyncWish): Promise<SyncReport> {
    return this.#answer(SYNC_REPLY_EXAMPLE, 'sync', wish);
  }

  changes(since: string | undefined): Promise<Changes> {
    return this.#answer(CHANGES_EXAMPLE, 'changes', since);
  }

  read(path: string): Promise<PathContent> {
    return this.#answer(FS_EXAMPLE, 'read', path);
  }

  archive(): Promise<AsyncIterable<Uint8Array>> {
    return this.#answer(this.chunks(), 'archive');
  }

  applyPatch(diff: string): Promise<PatchedFile[]> {
    return this.#answer(PATCH_REPLY_EXAMPLE.results, 'applyPatch', diff);
  }

  egress(): EgressReport {
    this.#call('egress');
    return EGRESS;
  }

  setEgress(asked: readonly string[]): Promise<EgressReport> {
    return this.#answer({ ...EGRESS, allow: asked }, 'setEgress', asked);
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
