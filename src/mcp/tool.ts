import {
  isInputRequiredResult,
  type CallToolResult,
  type ContentBlock,
  type InputRequiredResult,
  type McpServer,
  type ServerContext,
  type ToolAnnotations,
} from '@modelcontextprotocol/server';
import type * as z from 'zod';
import { toHotcellError, type HotcellError } from '../core/errors.ts';
import type { Log } from '../core/log.ts';
import type { Desk } from './desk.ts';
import { keepJson } from './kept-schema.ts';

export interface McpSettings {
  /** How long a call waits for the end of a run unless it says otherwise. */
  readonly waitMs: number;
  /** After which an unused session ends; told to the model. */
  readonly idleMs: number;
  readonly version: string;
}

/** One server object of the protocol, and for whom it is. */
export interface Served {
  readonly server: McpServer;
  readonly desk: Desk;
  readonly settings: McpSettings;
  readonly log: Log;
  /** Signs what travels through the client between two rounds of a call. */
  mintState(state: object, context: ServerContext): Promise<string>;
  /** Work that goes on after the reply. */
  afterwards(work: Promise<void>): void;
}

export interface ToolReply {
  readonly structured: Record<string, unknown>;
  /** All of it again for clients that show only text. */
  readonly text: string;
  readonly content?: readonly ContentBlock[];
  readonly failed?: boolean;
}

interface Tool<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  readonly annotations: ToolAnnotations;
  act(
    given: z.output<Input>,
    context: ServerContext,
  ): Promise<(ToolReply & { readonly structured: z.input<Output> }) | InputRequiredResult>;
}

/** What tools tell clients of themselves, before they are called. */
export const READS: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
export const REPLACES: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: true,
  idempotentHint: true,
  openWorldHint: false,
};

/** Adds a tool whose failures are replies that a model can act upon. */
export function addTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  { server, log }: Served,
  tool: Tool<Input, Output>,
): void {
  const { name, title, description, annotations } = tool;
  const config = {
    title,
    description,
    annotations: { title, ...annotations },
    inputSchema: keepJson(tool.input),
    outputSchema: keepJson(tool.output),
  };
  server.registerTool(name, config, async (given, context) => {
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The server has parsed it with this very schema.
      const reply = await tool.act(given as z.output<Input>, context);
      return isInputRequiredResult(reply) ? reply : toResult(reply);
    } catch (thrown) {
      const error = toHotcellError(thrown);
      if (error.status >= 500)
        log.error({ tool: name, code: error.code, error: error.message }, 'tool failed');
      return toErrorResult(error);
    }
  });
}

function toResult({ structured, text, content = [], failed = false }: ToolReply): CallToolResult {
  return {
    content: [{ type: 'text', text }, ...content],
    structuredContent: structured,
    ...(failed ? { isError: true } : {}),
  };
}

/** Only text: some clients hide it from the model as soon as there is structured content. */
function toErrorResult({ code, message, hint, field }: HotcellError): CallToolResult {
  const place = field === undefined ? '' : ` (${field})`;
  return { content: [{ type: 'text', text: `${code}: ${message}${place}\n${hint}` }], isError: true };
}

/** For replies that are as easily read as JSON. */
export function inBoth<Structured extends Record<string, unknown>>(
  structured: Structured,
): ToolReply & { readonly structured: Structured } {
  return { structured, text: JSON.stringify(structured, undefined, 2) };
}
