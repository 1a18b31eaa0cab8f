import { HotcellError } from '../core/errors.ts';
import type { FurnishedCell } from '../cells/furnished-cell.ts';
import type { CellNetwork } from '../egress/cell-network.ts';
import { refusedBy } from '../policy/command-rules.ts';
import type { AuditEntry } from '../policy/audit-entry.ts';
import type { EndReason } from '../core/session-words.ts';
import type { EgressReport } from '../egress/way-out.ts';
import type { PatchedFile, PathContent, SentFile, SyncReport, SyncWish } from '../workspace/files.ts';
import type {
  Changes,
  CommandRequest,
  ExecView,
  Session,
  SessionDetail,
  SessionExec,
  SessionView,
  TerminalRequest,
} from './api.ts';
import { toWorkspacePath } from './exec-plan.ts';
import type { HelperExecs } from './helper-execs.ts';
import type { BegunSession } from './new-session.ts';
import { SessionCommands } from './session-commands.ts';
import type { CommandExec } from './session-exec.ts';
import type { SessionFiles } from './session-files.ts';
import type { SessionHost } from './session-host.ts';
import { SessionLife } from './session-life.ts';
import { toSessionView } from './session-view.ts';
import type { SessionFacts } from './stored-session.ts';

/** A session that runs: its cell and what belongs to it. */
export interface SessionParts extends BegunSession {
  readonly helpers: HelperExecs;
  readonly files: SessionFiles;
  readonly furnished: FurnishedCell;
  readonly network: CellNetwork | undefined;
  readonly host: SessionHost;
}

/** One session, from its creation to its end. */
export class LiveSession implements Session {
  readonly id: string;
  readonly tenant: string;
  readonly facts: SessionFacts;
  readonly commands: SessionCommands;
  readonly life: SessionLife;
  readonly parts: SessionParts;
  readonly #host: SessionHost;
  #ranOutOfMemory = false;

  constructor(parts: SessionParts) {
    this.parts = parts;
    this.id = parts.id;
    this.tenant = parts.tenant;
    this.facts = parts.facts;
    this.#host = parts.host;
    this.life = new SessionLife(parts);
    this.commands = this.#makeCommands();
  }

  #makeCommands(): SessionCommands {
    const { facts, files, furnished, host, id, network, cell } = this.parts;
    const { life } = this;
    return new SessionCommands({
      sessionId: id,
      cell,
      ...host.options,
      rows: host.store.execs,
      counters: host.counters,
      outputFolder: host.outputFolderOf(id),
      limits: facts.limits,
      lostReason: () => this.lostReason,
      requireAwake: () => life.requireAwake(),
      onLife: () => life.touch(),
      place: { workspace: this.workspacePath, runtime: facts.runtime, variables: furnished.variables },
      setup: facts.setup,
      cwd: () => life.cwd,
      setCwd: (cwd) => life.setCwd(cwd),
      requireReady: () => {
        life.requireAwake();
        host.requireOpen();
      },
      untilReady: () => (network?.isReady === false ? network.untilReady() : undefined),
      dotenv: () => (facts.dotenv ? files.dotenv() : undefined),
      watchFiles: () => files.watch(),
      watchRefusals: () => {
        const mark = network?.mark() ?? 0;
        return () => network?.refusalsSince(mark) ?? [];
      },
      onEnded: (exec) => this.#onEnded(exec),
    });
  }

  get workspacePath(): string {
    return toWorkspacePath(this.facts.project);
  }

  /** Why the cell was lost, once it is. */
  get lostReason(): 'memory' | 'cell_lost' {
    return this.#ranOutOfMemory ? 'memory' : 'cell_lost';
  }

  get expiresAt(): number {
    return this.life.expiresAt(this.commands.table);
  }

  describe(): SessionView {
    const { id, expiresAt, parts } = this;
    const { cwd, isPaused } = this.life;
    const network = parts.network?.reachable() ?? [];
    const state = isPaused ? 'paused' : 'running';
    const seen = { id, state, cwd, expiresAt, network, isolation: parts.cell.isolation } as const;
    return toSessionView(this.facts, seen, this.#host.options.clock.now());
  }

  async detail(): Promise<SessionDetail> {
    const { cell } = this.parts;
    const disk = this.#host.options.volumes.usedBytes(this.facts.volumeKey);
    const [usage, diskBytes] = await Promise.all([cell.usage(), disk]);
    const running = this.commands.table.living().filter(({ state }) => state === 'running');
    return {
      ...this.describe(),
      usage: { ...usage, diskBytes, running: running.map(({ id }) => id) },
    };
  }

  destroy(): Promise<void> {
    return this.#host.end(this.id, 'deleted', 'deleted on request');
  }

  keepAlive(): SessionView {
    this.life.touch();
    return this.describe();
  }

  async pause(): Promise<SessionView> {
    const changed = await this.life.pause(this.commands.table);
    if (changed) this.#audit({ action: 'session.pause', outcome: 'ok' });
    return this.describe();
  }

  async resume(): Promise<SessionView> {
    const changed = await this.life.resume(this.commands.table);
    if (changed) this.#audit({ action: 'session.resume', outcome: 'ok' });
    return this.describe();
  }

  async exec(request: CommandRequest, signal: AbortSignal): Promise<SessionExec> {
    const { command } = request;
    const variables = Object.keys(request.env);
    this.#requireAllowed(command, variables);
    const exec = await this.commands.exec(request, signal);
    this.#audit({ action: 'exec.start', exec: exec.id, command, variables, outcome: 'ok' });
    return exec;
  }

  async openTerminal(request: TerminalRequest): Promise<SessionExec> {
    const { command } = request;
    const variables = Object.keys(request.env);
    if (command !== undefined) this.#requireAllowed(command, variables);
    const exec = await this.commands.openTerminal(request);
    this.#audit({ action: 'terminal.open', exec: exec.id, command, variables, outcome: 'ok' });
    return exec;
  }

  /** Advice, not a boundary: the cell is that. */
  #requireAllowed(command: string, variables: readonly string[]): void {
    const refused = refusedBy(command, this.#host.options.rules);
    if (refused === undefined) return;
    this.#audit({ action: 'refused', command, variables, outcome: `COMMAND_REFUSED ${refused.rule}` });
    throw new HotcellError('COMMAND_REFUSED', `rule ${refused.rule}: ${refused.reason}`, {
      field: 'command',
    });
  }

  execs(): ExecView[] {
    return this.commands.table.all().map((exec) => exec.describe());
  }

  findExec(id: string): CommandExec {
    const exec = this.commands.table.find(id);
    if (exec !== undefined) return exec;
    if (this.commands.table.isUnreadable(id)) {
      throw new HotcellError('EXEC_UNKNOWN', `what is stored of ${id} cannot be read`, {
        hint: 'It is kept as it is. The log of the server says what is wrong; every start tries again.',
      });
    }
    throw new HotcellError('EXEC_UNKNOWN', `this session has no command ${JSON.stringify(id)}`);
  }

  async kill(): Promise<string[]> {
    this.life.requireAwake();
    const ids = await this.commands.killForeground();
    for (const exec of ids) this.#audit({ action: 'exec.kill', exec, outcome: 'ok' });
    return ids;
  }

  async upload(files: readonly SentFile[]): Promise<void> {
    this.life.requireAwake();
    await this.parts.files.upload(files);
    this.#host.counters.uploads++;
    this.#audit({ action: 'files.write', outcome: 'ok', detail: `${files.length} files` });
  }

  async sync(wish: SyncWish): Promise<SyncReport> {
    this.life.requireAwake();
    const report = await this.parts.files.sync(wish);
    this.#host.counters.syncs++;
    const { synced, deleted } = report;
    if (synced + deleted > 0)
      this.#audit({ action: 'files.write', outcome: 'ok', detail: `${synced} files, ${deleted} deleted` });
    return report;
  }

  async changes(since: string | undefined): Promise<Changes> {
    this.life.requireAwake();
    return this.parts.files.changes(since);
  }

  async read(path: string): Promise<PathContent> {
    this.life.requireAwake();
    return this.parts.files.read(path);
  }

  async archive(): Promise<AsyncIterable<Uint8Array>> {
    this.life.requireAwake();
    return Promise.resolve(this.parts.files.archive());
  }

  async applyPatch(diff: string): Promise<PatchedFile[]> {
    this.life.requireAwake();
    const patched = await this.parts.files.applyPatch(diff);
    this.#audit({ action: 'files.write', outcome: 'ok', detail: `${patched.length} files patched` });
    return patched;
  }

  egress(): EgressReport | undefined {
    return this.parts.network?.describe();
  }

  async setEgress(allow: readonly string[]): Promise<EgressReport> {
    const { network } = this.parts;
    if (network === undefined) {
      throw new HotcellError('INVALID_REQUEST', 'the session was made without a network', {
        hint: 'Make a session with "network": true, or with a list of hosts.',
      });
    }
    network.setAllow(allow);
    this.#host.store.sessions.setAllow(this.id, allow);
    this.#audit({ action: 'egress.change', outcome: 'ok', detail: allow.join(' ') });
    return Promise.resolve(network.describe());
  }

  #onEnded(exec: CommandExec): void {
    const { result } = exec.describe();
    if (result === undefined) return;
    const { end, exitCode: code } = result;
    this.life.touch();
    this.#ranOutOfMemory = result.limitsReached.includes('memory');
    this.#host.counters.countExec(end.reason);
    this.#host.counters.egressRefusals += result.egressRefused.length;
    const outcome = end.reason === 'exit' ? `exit ${code}` : end.reason;
    this.#audit({ action: 'exec.end', exec: exec.id, outcome });
  }

  #audit(entry: Omit<AuditEntry, 'tenant' | 'user' | 'project' | 'session'>): void {
    const { project, user } = this.facts;
    this.#host.options.audit?.append({ ...entry, tenant: this.tenant, user, project, session: this.id });
  }

  /** No more requests: commands that wait are sent away, those that run are known to end with the cell. */
  close(reason: EndReason, error: HotcellError): void {
    this.life.end(error);
    const by =
      reason === 'deleted' ? 'session_deleted' : reason === 'expired' ? 'session_expired' : undefined;
    this.commands.condemn(by, error);
    this.parts.network?.close();
  }

  /** Written down, and told to the cell, which has to know its end when no server is there. */
  noteLife(): void {
    this.life.storeTouch();
    this.life.tellCell(this.commands.table);
  }

  /** The server goes, the session stays. */
  letGo(): void {
    this.parts.helpers.letGo();
    for (const exec of this.commands.table.living()) exec.letGo();
    this.parts.network?.close();
    this.noteLife();
  }
}
