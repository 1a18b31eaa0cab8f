import type * as z from 'zod';
import { HeadTail } from '../lib/head-tail.ts';
import { EgressReply } from '../wire/egress.ts';
import {
  BackgroundReply,
  ExecReply,
  ExecsReply,
  KillReply,
  OutputReply,
  StdinReply,
  type ExecResult,
  type OutputChunk,
} from '../wire/session-exec.ts';
import { ApplyPatchReply, ChangesReply, FsReply, SyncReply, UploadReply } from '../wire/session-files.ts';
import {
  DestroyReply,
  SessionDetailReply,
  SessionReply,
  SessionsReply,
  type RuntimeType,
} from '../wire/sessions.ts';
import { toArchiveStream } from './archive-stream.ts';
import { fromBase64, toBase64 } from './base64.ts';
import type { ClientEvent } from './client-event.ts';
import { toExecEvents, type FollowOptions } from './exec-events.ts';
import { HttpTransport, type HttpRequest, type TransportOptions } from './http-transport.ts';
import { openTerminal, type TerminalOptions } from './open-terminal.ts';
import { USUAL_RETRIES, type RetryPolicy } from './retry-policy.ts';
import { networkError, RunnerError } from './runner-error.ts';
import type {
  ExecReply as ExecOutcome,
  ExecRequest,
  IRunnerClient,
  RunnerSession,
  SessionOptions,
} from './runner-client.ts';
import type { TerminalConnection } from './terminal-connection.ts';
import {
  toWireFile,
  WorkspaceSync,
  type IDEFile,
  type SyncOptions,
  type SyncSummary,
} from './workspace-sync.ts';

const MiB = 1024 * 1024;
const LONGEST_WAIT_S = 30;
const STDIN_BYTES = 512 * 1024;

export interface HttpRunnerClientOptions extends Omit<TransportOptions, 'retries'> {
  readonly retries?: Partial<RetryPolicy> | undefined;
  /** About how much one request of `sync` carries; less than the server's sessions.bodyLimitBytes. */
  readonly requestBytes?: number | undefined;
  /** How much of each stream `exec` keeps; `execStream` has everything. */
  readonly outputKeptBytes?: number | undefined;
}

export interface WorkspaceFileContent {
  readonly bytes: Uint8Array;
  readonly size: number;
  readonly mode: number;
}

type FolderEntry = Extract<FsReply, { kind: 'folder' }>['entries'][number];

/** Sessions of a Hotcell server, for browsers and Node. Every call throws RunnerError. */
export class HttpRunnerClient implements IRunnerClient {
  readonly #transport: HttpTransport;
  readonly #options: HttpRunnerClientOptions;

  constructor(options: HttpRunnerClientOptions) {
    this.#options = options;
    this.#transport = new HttpTransport({ ...options, retries: { ...USUAL_RETRIES, ...options.retries } });
  }

  createSession(
    projectId: string,
    runtimeType: RuntimeType,
    options: SessionOptions = {},
  ): Promise<RunnerSession> {
    const body = { ...options, project_id: projectId, runtime_type: runtimeType };
    return this.#transport.json({ method: 'POST', path: '/v1/sessions', body }, SessionReply);
  }

  async listSessions(): Promise<SessionReply[]> {
    return (await this.#transport.json({ method: 'GET', path: '/v1/sessions' }, SessionsReply)).sessions;
  }

  getSession(sessionId: string): Promise<SessionDetailReply> {
    return this.#get(sessionId, '', SessionDetailReply);
  }

  async destroySession(sessionId: string): Promise<void> {
    await this.#transport.json({ method: 'DELETE', path: pathOf(sessionId) }, DestroyReply);
  }

  keepAlive(sessionId: string): Promise<SessionReply> {
    return this.#post(sessionId, '/keep-alive', SessionReply);
  }

  pause(sessionId: string): Promise<SessionReply> {
    return this.#post(sessionId, '/pause', SessionReply);
  }

  resume(sessionId: string): Promise<SessionReply> {
    return this.#post(sessionId, '/resume', SessionReply);
  }

  /** Runs a command to its end. Its output is cut in the middle when it is long. */
  async exec(sessionId: string, request: ExecRequest, options: FollowOptions = {}): Promise<ExecOutcome> {
    const limit = this.#options.outputKeptBytes ?? MiB;
    const kept = { stdout: new HeadTail(limit), stderr: new HeadTail(limit) };
    let lostBytes = 0;
    let result: ExecResult | undefined;
    // As a stream, because a connection that says nothing for minutes is cut by somebody on the way.
    for await (const event of this.execStream(sessionId, request, options)) {
      if (event.type === 'stdout' || event.type === 'stderr') kept[event.type].push(event.bytes);
      else if (event.type === 'cut') lostBytes += event.to - event.from;
      else if (event.type === 'exit') ({ result } = event);
    }
    if (result === undefined) throw networkError('the output ended before the command did');
    const stdout = kept.stdout.text();
    const stderr = kept.stderr.text();
    return {
      ...result,
      stdout: stdout.text,
      stderr: stderr.text,
      output_cut_bytes: stdout.cutBytes + stderr.cutBytes + lostBytes,
    };
  }

  /**
   * Runs a command and yields what it does. Connections that break are made again; the command is sent once. It begins
   * when the first event is asked for.
   */
  execStream(
    sessionId: string,
    request: ExecRequest & { readonly background?: boolean },
    options: FollowOptions = {},
  ): AsyncIterableIterator<ClientEvent> {
    const path = pathOf(sessionId);
    const begin: HttpRequest = { method: 'POST', path: `${path}/exec`, body: { ...request, stream: true } };
    return toExecEvents({
      ...options,
      following: { transport: this.#transport, path, begin },
      kill: (execId) => this.killExec(sessionId, execId),
    });
  }

  /** The output of a command that was begun before, from that byte on, to its end. */
  followExec(
    sessionId: string,
    execId: string,
    { from = 0, ...options }: FollowOptions & { readonly from?: number } = {},
  ): AsyncIterableIterator<ClientEvent> {
    return toExecEvents({
      ...options,
      following: { transport: this.#transport, path: pathOf(sessionId), execId: word(execId), from },
      kill: () => this.killExec(sessionId, execId),
    });
  }

  /** Begins a command that runs beside others, and resolves with its id. */
  async startBackground(sessionId: string, request: ExecRequest): Promise<string> {
    const body = { ...request, background: true };
    return (await this.#post(sessionId, '/exec', BackgroundReply, body)).exec_id;
  }

  async listExecs(sessionId: string): Promise<ExecReply[]> {
    return (await this.#get(sessionId, '/execs', ExecsReply)).execs;
  }

  getExec(sessionId: string, execId: string): Promise<ExecReply> {
    return this.#get(sessionId, `/execs/${word(execId)}`, ExecReply);
  }

  /** Resolves when the command has ended. */
  async waitExec(
    sessionId: string,
    execId: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<ExecResult> {
    const path = `${pathOf(sessionId)}/execs/${word(execId)}`;
    const query = { wait_s: LONGEST_WAIT_S };
    for (;;) {
      const { result } = await this.#transport.json({ method: 'GET', path, query, signal }, ExecReply);
      if (result !== null) return result;
    }
  }

  /** What is kept of the output at the moment, from that byte on. */
  readOutput(
    sessionId: string,
    execId: string,
    { from = 0, limit }: { readonly from?: number; readonly limit?: number } = {},
  ): Promise<OutputReply> {
    return this.#get(sessionId, `/execs/${word(execId)}/output`, OutputReply, { from, limit });
  }

  /** Types into a background command or a terminal. */
  async writeStdin(
    sessionId: string,
    execId: string,
    data: string | Uint8Array,
    { eof = false }: { readonly eof?: boolean } = {},
  ): Promise<void> {
    const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data;
    for (let at = 0; at === 0 || at < bytes.length; at += STDIN_BYTES) {
      await this.#post(sessionId, `/execs/${word(execId)}/stdin`, StdinReply, {
        data: toBase64(bytes.subarray(at, at + STDIN_BYTES)),
        encoding: 'base64',
        eof: eof && at + STDIN_BYTES >= bytes.length,
      });
    }
  }

  /** Ends every command in the foreground. */
  async killProcess(sessionId: string): Promise<void> {
    await this.kill(sessionId);
  }

  kill(sessionId: string): Promise<KillReply> {
    return this.#post(sessionId, '/kill', KillReply);
  }

  killExec(sessionId: string, execId: string): Promise<KillReply> {
    return this.#post(sessionId, `/execs/${word(execId)}/kill`, KillReply);
  }

  /** Writes files, all of them or none, in one request. */
  async upload(sessionId: string, files: readonly IDEFile[]): Promise<number> {
    const body = { files: await Promise.all(files.map(toWireFile)) };
    return (await this.#post(sessionId, '/upload', UploadReply, body)).synced;
  }

  /** Makes the workspace like these files; what is there already does not travel. */
  async syncWorkspace(sessionId: string, files: readonly IDEFile[]): Promise<void> {
    await this.sync(sessionId, files);
  }

  sync(sessionId: string, files: readonly IDEFile[], options: SyncOptions = {}): Promise<SyncSummary> {
    const request = { method: 'POST', path: `${pathOf(sessionId)}/sync`, signal: options.signal } as const;
    return new WorkspaceSync(files, options, {
      requestBytes: this.#options.requestBytes ?? 8 * MiB,
      send: (body) => this.#transport.json({ ...request, body }, SyncReply),
    }).run();
  }

  async readFile(sessionId: string, path: string): Promise<WorkspaceFileContent> {
    const reply = await this.#get(sessionId, '/fs', FsReply, { path });
    if (reply.kind !== 'file') throw otherKind(path, 'a folder', 'List it instead.');
    const { content, encoding, size, mode } = reply;
    return {
      bytes: encoding === 'base64' ? fromBase64(content) : new TextEncoder().encode(content),
      size,
      mode,
    };
  }

  async listFolder(sessionId: string, path = '.'): Promise<FolderEntry[]> {
    const reply = await this.#get(sessionId, '/fs', FsReply, { path });
    if (reply.kind !== 'folder') throw otherKind(path, 'a file', 'Read it instead.');
    return reply.entries;
  }

  /** Files that commands have changed: since this cursor, or since the last sync or upload. */
  changes(sessionId: string, since?: string): Promise<ChangesReply> {
    return this.#get(sessionId, '/changes', ChangesReply, { since });
  }

  /** The whole workspace as a tar archive. A stream that fails is not complete. */
  downloadArchive(
    sessionId: string,
    { signal }: { readonly signal?: AbortSignal } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const request: HttpRequest = { method: 'GET', path: `${pathOf(sessionId)}/archive`, signal };
    return this.#transport.send(request, (response) => Promise.resolve(toArchiveStream(response)));
  }

  applyPatch(sessionId: string, diff: string): Promise<ApplyPatchReply> {
    return this.#post(sessionId, '/apply_patch', ApplyPatchReply, { diff });
  }

  getEgress(sessionId: string): Promise<EgressReply> {
    return this.#get(sessionId, '/egress', EgressReply);
  }

  /** Replaces the hosts that the session may reach. */
  setEgress(sessionId: string, allow: readonly string[]): Promise<EgressReply> {
    const request = { method: 'PUT', path: `${pathOf(sessionId)}/egress`, body: { allow } } as const;
    return this.#transport.json(request, EgressReply);
  }

  /** A shell in a terminal, or one more viewer of a terminal that is there. */
  openTerminal(sessionId: string, options: TerminalOptions): Promise<TerminalConnection> {
    const path = pathOf(sessionId);
    return openTerminal({ transport: this.#transport, path, apiKey: this.#options.apiKey }, options);
  }

  #get<Schema extends z.ZodType>(
    sessionId: string,
    rest: string,
    schema: Schema,
    query: HttpRequest['query'] = {},
  ): Promise<z.output<Schema>> {
    return this.#transport.json({ method: 'GET', path: pathOf(sessionId) + rest, query }, schema);
  }

  #post<Schema extends z.ZodType>(
    sessionId: string,
    rest: string,
    schema: Schema,
    body?: unknown,
  ): Promise<z.output<Schema>> {
    return this.#transport.json({ method: 'POST', path: pathOf(sessionId) + rest, body }, schema);
  }
}

/** The exact bytes of a part of the output. */
export function bytesOfChunk({ data, base64 }: OutputChunk): Uint8Array {
  return base64 === undefined ? new TextEncoder().encode(data) : fromBase64(base64);
}

function pathOf(sessionId: string): string {
  return `/v1/sessions/${word(sessionId)}`;
}

/** SECURITY: an id with a slash in it would be another path. */
function word(id: string): string {
  return encodeURIComponent(id);
}

function otherKind(path: string, kind: string, hint: string): RunnerError {
  return new RunnerError('FILE_REFUSED', `${path} is ${kind}`, { hint, field: 'path' });
}
