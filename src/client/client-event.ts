import * as z from 'zod';
import { ExecResult } from '../wire/session-exec.ts';
import { fromBase64 } from './base64.ts';
import type { ServerSentEvent } from './event-stream-parser.ts';
import { badReply } from './runner-error.ts';

/** What a command did, as a caller sees it. */
export type ClientEvent =
  | { readonly type: 'start'; readonly execId: string; readonly from: number }
  | OutputPart
  /** These bytes of its output are no longer kept. */
  | { readonly type: 'cut'; readonly from: number; readonly to: number }
  | { readonly type: 'exit'; readonly result: ExecResult };

/** A part of the output. */
export class OutputPart {
  readonly type: 'stdout' | 'stderr';
  /** Its place in all output of the command, both streams together. */
  readonly from: number;
  readonly bytes: Uint8Array;

  constructor(type: 'stdout' | 'stderr', from: number, bytes: Uint8Array) {
    this.type = type;
    this.from = from;
    this.bytes = bytes;
  }

  /** The bytes as text; what is no text is shown as \ufffd. */
  get text(): string {
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(this.bytes);
  }
}

/** The server is about to go; the output goes on elsewhere. */
export interface Interruption {
  readonly type: 'interrupted';
  readonly detail: string;
}

const Start = z.object({ exec_id: z.string().min(1), from: z.int().min(0) });
const Cut = z.object({ from: z.int().min(0), to: z.int().min(0) });
const Interrupted = z.object({ detail: z.string() });

const utf8 = new TextEncoder();

/** Undefined for events of names that are not ours: a later server may have more. */
export function toClientEvent(event: ServerSentEvent): ClientEvent | Interruption | undefined {
  switch (event.type) {
    case 'start': {
      const { exec_id: execId, from } = parse(Start, event);
      return { type: 'start', execId, from };
    }
    case 'stdout':
    case 'stderr':
      return toOutputPart(event.type, utf8.encode(event.data), event);
    case 'stdout_base64':
      return toOutputPart('stdout', decode(event), event);
    case 'stderr_base64':
      return toOutputPart('stderr', decode(event), event);
    case 'cut': {
      const { from, to } = parse(Cut, event);
      return { type: 'cut', from, to };
    }
    case 'exit':
      return { type: 'exit', result: parse(ExecResult, event) };
    case 'interrupted':
      return { type: 'interrupted', detail: parse(Interrupted, event).detail };
    default:
      return undefined;
  }
}

function toOutputPart(
  stream: 'stdout' | 'stderr',
  bytes: Uint8Array,
  { lastEventId }: ServerSentEvent,
): OutputPart {
  const next = /^\d{1,15}$/.test(lastEventId) ? Number(lastEventId) : -1;
  if (next < bytes.length) throw badReply('output without its place');
  return new OutputPart(stream, next - bytes.length, bytes);
}

function decode({ data }: ServerSentEvent): Uint8Array {
  try {
    return fromBase64(data);
  } catch (error) {
    throw badReply('output that is no base64', error);
  }
}

function parse<Schema extends z.ZodType>(schema: Schema, { type, data }: ServerSentEvent): z.output<Schema> {
  try {
    return schema.parse(JSON.parse(data));
  } catch (error) {
    throw badReply(`an event ${type} of another form`, error);
  }
}
