import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ErrorReply, ExecuteReply, HealthReply } from '../../src/wire/execute.ts';
import { COMPILE_CACHE, MAIN, SOURCE } from './command.ts';
import type { Way } from './served-by.ts';

export interface ServerOptions {
  /** Otherwise what the server takes by itself, which is oci/fresh where these tests run. */
  readonly way?: Way | undefined;
  readonly args?: readonly string[];
  /** Undefined: as if nobody had set it. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A module that the process loads before the server's own and that changes those: they come from the sources then. */
  readonly preload?: string;
  /** Instead of node with our main, as when somebody else is to run it. */
  readonly program?: readonly string[];
  /** Given when a second server is to find what the first one left. */
  readonly stateDirectory?: string;
}

export interface ExecuteAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ExecuteReply & ErrorReply;
}

/** Where a server with this state directory keeps its sessions; the next one with the same finds them. */
export function dataDirectoryOf(stateDirectory: string): string {
  return `${stateDirectory}-data`;
}

/** What drivers and doors keep beside the state directory. */
const BESIDE = ['docker', 'podman', 'preload', 'subprocess', 'workbench'];

export function removeFolders(stateDirectory: string): void {
  const beside = BESIDE.map((name) => `${stateDirectory}-${name}`);
  for (const folder of [stateDirectory, dataDirectoryOf(stateDirectory), ...beside])
    rmSync(folder, { recursive: true, force: true });
}

/** A server that ended before it was ready. */
export class StartFailure extends Error {
  /** By which what it left can be found. */
  readonly pid: number;
  readonly code: number | null;
  readonly output: string;

  constructor(child: ChildProcess, code: number | null, output: string) {
    super(`the server ended with ${code}: ${output}`);
    this.name = 'StartFailure';
    this.pid = child.pid ?? 0;
    this.code = code;
    this.output = output;
  }
}

/** A real server in a process of its own, with a state directory of its own. */
export class TestServer implements AsyncDisposable {
  readonly url: string;
  readonly stateDirectory: string;
  readonly process: ChildProcess;
  readonly way: Way | undefined;
  readonly #ownsState: boolean;
  readonly #output: string[];

  private constructor(parts: {
    url: string;
    state: string;
    ownsState: boolean;
    child: ChildProcess;
    way: Way | undefined;
    output: string[];
  }) {
    this.url = parts.url;
    this.stateDirectory = parts.state;
    this.process = parts.child;
    this.way = parts.way;
    this.#ownsState = parts.ownsState;
    this.#output = parts.output;
  }

  static async start(options: ServerOptions = {}): Promise<TestServer> {
    const { way } = options;
    await way?.prepare();
    const state = options.stateDirectory ?? makeStateDirectory();
    const main = options.preload === undefined ? [MAIN] : ['--import', options.preload, SOURCE];
    const settings = ['--port', '0', ...(way?.args ?? []), ...(options.args ?? [])];
    const [file = '', ...words] = options.program ?? [process.execPath, '--max-semi-space-size=2', ...main];
    const child = spawn(file, [...words, 'up', ...settings], {
      // Flag and the last three variables as the launcher has them.
      env: {
        PATH: process.env['PATH'] ?? '',
        HOTCELL_STATE_DIR: state,
        HOTCELL_SESSIONS_DIR: dataDirectoryOf(state),
        // What a session may write is reserved for it, and here that is memory.
        HOTCELL_SESSIONS_LIMITS_DISK_BYTES: '64m',
        UV_THREADPOOL_SIZE: '16',
        MALLOC_ARENA_MAX: '2',
        ...COMPILE_CACHE,
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ownsState = options.stateDirectory === undefined;
    const output: string[] = [];
    const url = await new Promise<string>((resolve, reject) => {
      const listen = (chunk: Buffer): void => {
        output.push(chunk.toString());
        const found = /ready on (http:\/\/\S+)/.exec(output.join(''))?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.on('data', listen);
      child.stderr.on('data', listen);
      // Not at its exit: the last words may come after it.
      child.on('close', (code) => reject(new StartFailure(child, code, output.join(''))));
    }).catch((error: unknown) => {
      if (ownsState) removeFolders(state);
      throw error;
    });
    return new TestServer({ url, state, ownsState, child, way, output });
  }

  get output(): string {
    return this.#output.join('');
  }

  async execute(
    language: string,
    body: object | string,
    headers: Record<string, string> = {},
  ): Promise<ExecuteAnswer> {
    const response = await fetch(`${this.url}/execute/${language}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as ExecuteReply & ErrorReply,
    };
  }

  async health(): Promise<HealthReply> {
    const response = await fetch(`${this.url}/health`);
    return (await response.json()) as HealthReply;
  }

  /** Sends a signal and resolves with the exit code, null after a signal that could not be handled. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return this.process.exitCode;
    const exited = once(this.process, 'exit') as Promise<[number | null]>;
    this.process.kill(signal);
    const [code] = await exited;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#ownsState) removeFolders(this.stateDirectory);
  }
}

/** Open to walk through, as the driver would make it: the cells' users are others than ours. */
export function makeStateDirectory(): string {
  const state = mkdtempSync(join(tmpdirOnTmpfs(), 'hotcell-test-'));
  chmodSync(state, 0o711);
  return state;
}

/** Bundles are made and removed by the thousand: not on a disk. */
export function tmpdirOnTmpfs(): string {
  return process.platform === 'linux' ? '/dev/shm' : tmpdir();
}
