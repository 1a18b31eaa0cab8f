import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const PLACEHOLDER = '/path/to/hotcell';

const Texts = z.record(z.string(), z.string());
const program = { command: z.string().min(1), args: z.array(z.string()).optional(), env: Texts.optional() };
const remote = { url: z.url(), headers: Texts.optional() };
const Name = z.string().regex(/^[A-Za-z0-9_-]+$/);

/** What each client takes, and nothing else: a field that it would ignore is a mistake of ours. */
const ClaudeCode = z.strictObject({
  mcpServers: z.record(
    Name,
    z.union([
      z.strictObject({ type: z.literal('stdio').optional(), ...program }),
      z.strictObject({ type: z.literal('http'), ...remote }),
    ]),
  ),
});
const ClaudeDesktop = z.strictObject({ mcpServers: z.record(Name, z.strictObject(program)) });
const VsCode = z.strictObject({
  servers: z.record(Name, z.strictObject({ type: z.literal('stdio'), ...program })),
});
const Cursor = z.strictObject({
  mcpServers: z.record(Name, z.strictObject({ type: z.literal('stdio'), ...program })),
});

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** What the variables of clients stand for. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string>>;
  readonly workspaceFolder: string;
}

type Expand = (text: string, surroundings: Surroundings) => string;

/** `${NAME}` and `${NAME:-default}`; a variable that is missing is an error there. */
const expandClaudeCode: Expand = (text, { env }) =>
  text.replaceAll(/\$\{(\w+)(?::-([^}]*))?\}/g, (_all, name: string, otherwise?: string) =>
    need(env[name] ?? otherwise, name),
  );
const expandNothing: Expand = (text) => text;
/** `${env:NAME}`, `${workspaceFolder}`, `${userHome}`. */
const expandEditor: Expand = (text, { env, workspaceFolder }) =>
  text.replaceAll(/\$\{([^}]+)\}/g, (_all, name: string) => {
    if (name === 'workspaceFolder') return workspaceFolder;
    if (name === 'userHome') return need(env['HOME'], name);
    return need(name.startsWith('env:') ? env[name.slice('env:'.length)] : undefined, name);
  });

function need(value: string | undefined, name: string): string {
  if (value === undefined) throw new Error(`\${${name}} stands for nothing`);
  return value;
}

interface StdioClient {
  /** Heading of its section. */
  readonly title: string;
  readonly schema: z.ZodType<{ mcpServers: Servers } | { servers: Servers }>;
  readonly expand: Expand;
}
type Servers = Record<string, unknown>;

export const STDIO_CLIENTS: readonly StdioClient[] = [
  { title: 'Claude Code', schema: ClaudeCode, expand: expandClaudeCode },
  { title: 'Claude Desktop', schema: ClaudeDesktop, expand: expandNothing },
  { title: 'VS Code', schema: VsCode, expand: expandEditor },
  { title: 'Cursor', schema: Cursor, expand: expandEditor },
];

/** The fenced blocks of one section of docs/mcp.md. */
function blocksOf(title: string, language: string): string[] {
  const page = readFileSync(`${ROOT}/docs/mcp.md`, 'utf8');
  const section = page.split(/^### /m).find((part) => part.startsWith(`${title}\n`)) ?? '';
  const ownPart = section.split(/^## /m)[0] ?? '';
  return [...ownPart.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, kind, text = '']) =>
    kind === language ? [text] : [],
  );
}

function onlyBlock(title: string, language: string): string {
  const [block, ...others] = blocksOf(title, language);
  if (block === undefined || others.length > 0) throw new Error(`${title}: not one ${language} block`);
  return block;
}

/** Changes every text in a value. */
function mapTexts<Value>(value: Value, change: (text: string) => string): Value {
  return JSON.parse(JSON.stringify(value), (_key, inner: unknown) =>
    typeof inner === 'string' ? change(inner) : inner,
  ) as Value;
}

/** The program that a client would start, by the block of its section. */
export function programOf({ title, schema, expand }: StdioClient, surroundings: Surroundings): Program {
  const parsed = schema.parse(JSON.parse(onlyBlock(title, 'json')));
  const [server] = Object.values('servers' in parsed ? parsed.servers : parsed.mcpServers);
  const placed = mapTexts(server, (text) => expand(text.replaceAll(PLACEHOLDER, ROOT), surroundings));
  const { command, args, env } = z.object(program).parse(placed);
  return { command, args: args ?? [], env: env ?? {} };
}

/** The program that `claude mcp add NAME -- COMMAND…` would have started. */
export function programOfClaudeAdd(): Program {
  const found = /^\$ claude mcp add [\w-]+ -- (.+)$/m.exec(onlyBlock('Claude Code', 'console'));
  const [command = '', ...args] = (found?.[1] ?? '').replaceAll(PLACEHOLDER, ROOT).split(' ');
  return { command, args, env: {} };
}

/** Address and headers of the section on HTTP, as Claude Code reads it. */
export function remoteOf(surroundings: Surroundings): { url: string; headers: Record<string, string> } {
  const parsed = ClaudeCode.parse(JSON.parse(onlyBlock('Over HTTP', 'json')));
  const [server] = Object.values(parsed.mcpServers);
  const { url, headers } = z
    .object(remote)
    .parse(mapTexts(server, (text) => expandClaudeCode(text, surroundings)));
  return { url, headers: headers ?? {} };
}
