import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StreamableHTTPClientTransport, type Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { findTraces, listProcesses, waitFor } from './leftovers.ts';
import { makeClient, type ClientOptions } from './mcp-client.ts';
import { engineThingsOf } from './footprint.ts';
import { dataDirectoryOf, makeStateDirectory, removeFolders, TestServer } from './server.ts';
import { DOCKER_FRESH, isMeant, OCI_FRESH, type Way } from './served-by.ts';
import { COMPILE_CACHE, MAIN } from './command.ts';
import { describeThatNeeds } from './needs.ts';

const NAMES = fileURLToPath(new URL('test-names.ts', import.meta.url));

/** One way to run code for AI clients. */
export interface McpMode {
  readonly name: string;
  readonly mode: 'preload' | 'container';
  /** That makes the cells of container mode. */
  readonly way: Way | undefined;
  /** What replies call it. */
  readonly driver: string;
}

export const PRELOAD: McpMode = { name: 'preload', mode: 'preload', way: undefined, driver: 'preload' };
export const CONTAINER: McpMode = {
  name: 'container (oci)',
  mode: 'container',
  way: OCI_FRESH,
  driver: 'oci',
};
export const DOCKER: McpMode = {
  name: 'container (docker)',
  mode: 'container',
  way: DOCKER_FRESH,
  driver: 'docker',
};

/** The same tests over each of these modes. */
export function describeModes(modes: readonly McpMode[], tests: (mode: McpMode) => void): void {
  for (const mode of modes.filter(({ way }) => isMeant(way?.driver)))
    describeThatNeeds(mode.way?.missing)(mode.name, () => tests(mode));
}

export function modeArgs({ mode, way }: McpMode): string[] {
  const engine = way?.driver === 'docker' ? way.args.filter((_, index) => index >= way.args.length - 2) : [];
  const driver = way === undefined ? [] : ['--driver', way.driver];
  return ['--set', `mcp.mode=${mode}`, ...driver, ...engine];
}

/** For `hotcell up` that only AI clients use: no cell waits for runs of /execute. */
export const NO_POOL = ['--set', 'pool.size=0'];

/** Folders of servers that follow each other: state, packages, snippets. */
export class McpPlace implements Disposable {
  readonly stateDirectory = makeStateDirectory();
  readonly data = mkdtempSync(join(tmpdir(), 'hotcell-mcp-'));

  constructor() {
    // Cells have other users than we are.
    chmodSync(this.data, 0o755);
  }

  get packages(): string {
    return join(this.data, 'packages');
  }

  get env(): Record<string, string> {
    const own = Object.entries(process.env).filter((entry): entry is [string, string] => {
      const [name, value] = entry;
      return value !== undefined && !/^(?:HOTCELL_|EXECUTION_MODE|NODE_OPTIONS|VITEST)/.test(name);
    });
    return {
      ...Object.fromEntries(own),
      HOTCELL_STATE_DIR: this.stateDirectory,
      HOTCELL_SESSIONS_DIR: dataDirectoryOf(this.stateDirectory),
      HOTCELL_PACKAGES_DIR: this.packages,
      HOTCELL_MCP_SNIPPETS_DIR: join(this.data, 'snippets'),
      UV_THREADPOOL_SIZE: '16',
      MALLOC_ARENA_MAX: '2',
      ...COMPILE_CACHE,
    };
  }

  /** What is left on the host of servers with these pids; nothing, when all is well. */
  async remains(pids: readonly number[], { way }: McpMode): Promise<string[]> {
    const { stateDirectory } = this;
    const { processes, cgroups, mounts, folders } = findTraces(stateDirectory, this.#instances);
    const things =
      way?.driver === 'docker' ? (await Promise.all(pids.map((pid) => engineThingsOf(pid)))).flat() : [];
    const list = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
    return [
      ...processes,
      ...cgroups,
      ...mounts,
      ...folders,
      ...this.#siblings.flatMap(list),
      ...things.map(({ kind, name }) => `${kind} ${name}`),
    ];
  }

  readonly #instances: string[] = [];

  /** Where workbenches and confined processes are recorded. */
  get #siblings(): string[] {
    return ['workbench', 'preload'].map((name) => `${this.stateDirectory}-${name}`);
  }

  /** To be called while a server runs: afterwards nobody would know what its cells are called by. */
  note(): void {
    for (const folder of [this.stateDirectory, ...this.#siblings])
      if (existsSync(folder)) this.#instances.push(...readdirSync(folder));
  }

  async untilNothingIsLeft(pids: readonly number[], mode: McpMode): Promise<void> {
    const isClean = async (): Promise<boolean> => (await this.remains(pids, mode)).length === 0;
    await waitFor('nothing is left', isClean).catch(async (error: unknown) => {
      throw new Error(`left: ${(await this.remains(pids, mode)).join('; ')}`, { cause: error });
    });
  }

  [Symbol.dispose](): void {
    removeFolders(this.stateDirectory);
    for (const folder of [...this.#siblings, this.data]) rmSync(folder, { recursive: true, force: true });
  }
}

export interface McpServerOptions extends Partial<ClientOptions> {
  readonly mode: McpMode;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Names that end in .test are this machine, for the server. */
  readonly testNames?: boolean;
}

/** The real `hotcell mcp`, with a client of the SDK at its other end. */
export class McpServer implements AsyncDisposable {
  readonly client: Client;
  readonly place: McpPlace;
  readonly #transport: StdioClientTransport;
  readonly #words: string[];

  private constructor(parts: {
    client: Client;
    place: McpPlace;
    transport: StdioClientTransport;
    words: string[];
  }) {
    this.client = parts.client;
    this.place = parts.place;
    this.#transport = parts.transport;
    this.#words = parts.words;
  }

  static async start(place: McpPlace, options: McpServerOptions): Promise<McpServer> {
    await options.mode.way?.prepare();
    const { era = 'legacy', answer } = options;
    const transport = new StdioClientTransport({ ...mcpCommand(place, options), stderr: 'pipe' });
    const words: string[] = [];
    transport.stderr?.on('data', (chunk: Buffer) => words.push(chunk.toString()));
    const client = makeClient({ era, ...(answer === undefined ? {} : { answer }) });
    await client.connect(transport);
    return new McpServer({ client, place, transport, words });
  }

  get pid(): number {
    return this.#transport.pid ?? 0;
  }

  get log(): string {
    return this.#words.join('');
  }

  /** As if the client had been killed: nobody says good-bye, the pipes are only shut. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

/** What starts `hotcell mcp`, as the launcher does. */
export function mcpCommand(
  place: McpPlace,
  { mode, args = [], env = {}, testNames = false }: McpServerOptions,
): { command: string; args: string[]; env: Record<string, string> } {
  const names = testNames ? ['--import', NAMES] : [];
  return {
    command: process.execPath,
    args: ['--max-semi-space-size=2', ...names, MAIN, 'mcp', ...modeArgs(mode), ...args],
    env: { ...place.env, ...env },
  };
}

/** The real `hotcell up`, with a client at its /mcp. */
export async function connectToUp(
  place: McpPlace,
  options: McpServerOptions,
): Promise<{ server: TestServer; client: Client } & AsyncDisposable> {
  const { era = 'legacy', answer, mode } = options;
  await mode.way?.prepare();
  const server = await TestServer.start({
    args: [...modeArgs(mode), ...NO_POOL, ...(options.args ?? [])],
    env: { ...place.env, ...options.env },
    stateDirectory: place.stateDirectory,
  });
  const client = makeClient({ era, ...(answer === undefined ? {} : { answer }) });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)));
  return {
    server,
    client,
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await server.stop();
    },
  };
}

/** Is anything alive whose command line has this in it? */
export function isAlive(marker: string): boolean {
  return listProcesses().some((line) => line.includes(marker));
}
