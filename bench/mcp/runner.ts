import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export type Mode = 'container' | 'preload';

const PROGRAM = fileURLToPath(new URL('../../hotcell', import.meta.url));

/** A client of the SDK with a server of its own, as an editor would start it. */
export class McpRunner implements AsyncDisposable {
  readonly #client: Client;
  #runs = 0;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async start(mode: Mode, scratch: string): Promise<McpRunner> {
    const folder = join(scratch, mode);
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    const client = new Client(
      { name: 'bench', version: '1.0.0' },
      { versionNegotiation: { mode: 'legacy' } },
    );
    const args = [
      'mcp',
      '--mode',
      mode,
      '--driver',
      'oci',
      '--set',
      `packages.dir=${join(folder, 'packages')}`,
    ];
    await client.connect(
      new StdioClientTransport({
        command: PROGRAM,
        args: [...args, '--set', `stateDir=${join(folder, 'state')}`],
        stderr: 'ignore',
      }),
    );
    return new McpRunner(client);
  }

  /** Runs code that must print this; it is never quite the same code, which has to be read and written each time. */
  async run(code: string, expected: string): Promise<void> {
    const result = await this.#client.callTool({
      name: 'run_code',
      arguments: { code: `${code} // ${++this.#runs}` },
    });
    const { structuredContent: found } = result;
    if (typeof found === 'object' && found !== null && 'stdout' in found && found.stdout === expected) return;
    throw new Error(`run_code: ${JSON.stringify(result).slice(0, 500)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }
}
