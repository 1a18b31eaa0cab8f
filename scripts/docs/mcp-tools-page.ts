import { PassThrough } from 'node:stream';
import { Client } from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { DEFAULT_WORKBENCH_SETTINGS } from '../../src/workbench/settings.ts';
import { McpConfig } from '../../src/app/config/mcp-config.ts';
import { SILENT_LOG } from '../../src/core/log.ts';
import { McpDoor } from '../../src/mcp/door.ts';
import { serveOverStdio } from '../../src/mcp/stdio-door.ts';
import { code, page, plain, table } from './markdown.ts';
import { rowsOf } from './schema-rows.ts';

/** As a client is told over stdio. */
export async function mcpToolsPage(): Promise<string> {
  const { tools, templates, prompts } = await askServer();
  const fields = (schema: unknown): string => {
    const rows = rowsOf(schema, '');
    return rows.length === 0 ? 'None.' : table(['Field', 'Type', 'Meaning'], rows);
  };
  const runs = new Set(['get_run', 'cancel_run']);
  return page(
    'Tools of the MCP door',
    ['src/wire/run-code.ts', 'src/wire/permission-tools.ts', 'src/wire/snippets.ts', 'src/mcp'],
    'As a client is told over stdio. How they behave is in [mcp.md](mcp.md). Unknown arguments are refused.',
    table(
      ['Tool', 'What it does'],
      tools.map(({ name, title }) => [`[${code(name)}](#${name})`, plain(title ?? '')]),
    ),
    ...tools.flatMap(({ name, description, inputSchema, outputSchema }) => [
      `## ${name}`,
      plain(description ?? ''),
      'Arguments:',
      fields(inputSchema),
      ...(runs.has(name)
        ? ['Result: that of [`run_code`](#run_code).']
        : ['Result:', fields(outputSchema ?? {})]),
    ]),
    '## Resources',
    table(
      ['Address', 'What it is'],
      templates.map(({ address, description }) => [code(address), plain(description)]),
    ),
    '## Prompts',
    table(
      ['Prompt', 'What for'],
      prompts.map(({ name, description }) => [code(name), plain(description ?? '')]),
    ),
  );
}

async function askServer() {
  const { waitMs } = McpConfig.parse({});
  const door = new McpDoor({
    workbenches: () => Promise.reject(new Error('nothing runs here')),
    settings: { waitMs, idleMs: DEFAULT_WORKBENCH_SETTINGS.idleMs, version: '' },
    log: SILENT_LOG,
  });
  const [up, down] = [new PassThrough(), new PassThrough()];
  const connection = serveOverStdio(door, { tenant: 'default' }, { stdin: up, stdout: down });
  const client = new Client({ name: 'docs', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  // The same lines in both directions, so the server's side serves a client as well.
  await client.connect(new StdioServerTransport(down, up));
  const { tools } = await client.listTools();
  const { resources } = await client.listResources();
  const { resourceTemplates } = await client.listResourceTemplates();
  const { prompts } = await client.listPrompts();
  await client.close();
  await connection.close();
  const templates = [
    ...resources.map(({ uri, description = '' }) => ({ address: uri, description })),
    ...resourceTemplates.map(({ uriTemplate, description = '' }) => ({ address: uriTemplate, description })),
  ];
  return { tools, templates, prompts };
}
