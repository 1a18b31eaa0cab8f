import { PassThrough } from 'node:stream';
import {
  Client,
  StreamableHTTPClientTransport,
  type CallToolResult,
  type ElicitRequest,
  type ElicitResult,
  type RequestOptions,
} from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { SILENT_LOG, type Log } from '../../src/core/log.ts';
import { ScriptedServer } from '../../src/http/scripted-server.double.ts';
import { McpDoor } from '../../src/mcp/door.ts';
import { McpHttpDoor } from '../../src/mcp/http-door.ts';
import { ScriptedWorkbenches } from '../../src/mcp/scripted-workbench.double.ts';
import { serveOverStdio } from '../../src/mcp/stdio-door.ts';
import type { McpSettings } from '../../src/mcp/tool.ts';
import type { TenantSettings } from '../../src/policy/tenants.ts';
import type { RunReply } from '../../src/wire/run-code.ts';

export type Era = 'legacy' | 'modern';
export type Way = 'stdio' | 'http';

/** Every way to talk to the door. */
export const WAYS: readonly (readonly [Way, Era])[] = [
  ['stdio', 'legacy'],
  ['stdio', 'modern'],
  ['http', 'legacy'],
  ['http', 'modern'],
];

type Answer = (question: ElicitRequest['params']) => ElicitResult | Promise<ElicitResult>;

export interface ClientOptions {
  readonly era: Era;
  /** Answers questions; without it the client says that it cannot be asked. */
  readonly answer?: Answer;
}

/** A client of the SDK that speaks one era and nothing else. */
export function makeClient({ era, answer }: ClientOptions): Client {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    {
      capabilities: answer === undefined ? {} : { elicitation: { form: {} } },
      versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } },
    },
  );
  if (answer !== undefined) client.setRequestHandler('elicitation/create', ({ params }) => answer(params));
  return client;
}

interface HarnessOptions {
  readonly settings?: Partial<McpSettings>;
  readonly sessions?: number;
  readonly idleMs?: number;
  readonly tenants?: TenantSettings;
  readonly log?: Log;
}

/** The real door in front of scripted sessions, reached over real transports by real clients. */
export class McpHarness implements AsyncDisposable {
  readonly workbenches = new ScriptedWorkbenches();
  readonly door: McpDoor;
  readonly http: McpHttpDoor;
  readonly server: ScriptedServer;
  readonly #open: (() => Promise<unknown>)[] = [];

  static async start(options: HarnessOptions = {}): Promise<McpHarness> {
    const harness = new McpHarness(options);
    await harness.server.app.listen({ host: '127.0.0.1', port: 0 });
    return harness;
  }

  constructor({ settings, sessions = 10, idleMs = 60_000, tenants, log = SILENT_LOG }: HarnessOptions) {
    this.door = new McpDoor({
      workbenches: () => Promise.resolve(this.workbenches),
      settings: { waitMs: 10_000, idleMs: 60_000, version: '9.8.7', ...settings },
      log,
    });
    this.http = new McpHttpDoor(this.door, { sessions, idleMs });
    this.server = new ScriptedServer({ mcp: this.http, ...(tenants === undefined ? {} : { tenants }) });
  }

  async connect(way: Way, options: ClientOptions & { readonly key?: string }): Promise<Client> {
    const client = makeClient(options);
    if (way === 'http') {
      const { key } = options;
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
      await client.connect(new StreamableHTTPClientTransport(this.url, { requestInit: { headers } }));
    } else {
      const [up, down] = [new PassThrough(), new PassThrough()];
      const connection = serveOverStdio(this.door, { tenant: 'default' }, { stdin: up, stdout: down });
      this.#open.push(() => connection.close());
      // The same lines in both directions, so the server's side serves a client as well.
      await client.connect(new StdioServerTransport(down, up));
    }
    this.#open.push(() => client.close());
    return client;
  }

  get url(): URL {
    return new URL(`http://127.0.0.1:${this.server.port}/mcp`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#open.toReversed()) await close();
    await Promise.all([this.server.app.close(), this.http.close()]);
    await this.door.close();
  }
}

export interface Called {
  readonly text: string;
  readonly failed: boolean;
  readonly content: CallToolResult['content'];
  readonly structured: Record<string, unknown>;
}

export async function call(
  client: Client,
  name: string,
  given: Record<string, unknown> = {},
  options?: RequestOptions,
): Promise<Called> {
  const result = await client.callTool({ name, arguments: given }, options);
  const [first] = result.content;
  return {
    text: first?.type === 'text' ? first.text : '',
    failed: result.isError === true,
    content: result.content,
    structured: (result.structuredContent ?? {}) as Record<string, unknown>,
  };
}

/** What a tool says about a run. */
export async function run(
  client: Client,
  given: Record<string, unknown>,
  options?: RequestOptions,
): Promise<Called & { readonly reply: RunReply }> {
  const called = await call(client, 'run_code', given, options);
  return { ...called, reply: called.structured as RunReply };
}

/** Until it has ended: the network may take longer than a client waits. */
export async function runToEnd(
  client: Client,
  given: Record<string, unknown>,
  options?: RequestOptions,
): Promise<Called & { readonly reply: RunReply }> {
  let told = await run(client, given, options);
  while (told.reply.status === 'running') {
    const called = await call(client, 'get_run', { run_id: told.reply.run_id }, options);
    told = { ...called, reply: called.structured as RunReply };
  }
  return told;
}
