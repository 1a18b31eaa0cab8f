import type { HotcellError } from '../../core/errors.ts';
import type { ExecResult } from '../../wire/session-exec.ts';
import { toErrorReply } from '../error-reply.ts';
import type { Piece } from './output-pieces.ts';

/** One way to write the output of a command as server-sent events. Every event has the place after it as its id. */
export interface EventFrames {
  start(execId: string, from: number): string;
  piece(piece: Piece): string;
  cut(from: number, to: number): string;
  exit(result: ExecResult, at: number): string;
  /** The stream ends before the command does; the client should ask again from its last id. */
  interrupted(error: HotcellError): string;
}

/** A comment: parsers skip it, proxies see that the connection lives. */
export const HEARTBEAT_FRAME = ': still running\n\n';

const RETRY_MS = 1000;

/**
 * Events with names, the text of the output as it is. Clients of the first hour know stdout, stderr and exit; a conforming
 * parser has no listener for the other names and so passes over them.
 */
export const NAMED_FRAMES: EventFrames = {
  start: (execId, from) => frame({ event: 'start', data: json({ exec_id: execId, from }), id: from }),
  piece: ({ stream, bytes, text, next }) =>
    text === undefined || /[\r\0]/.test(text)
      ? frame({ event: `${stream}_base64`, data: bytes.toString('base64'), id: next })
      : frame({ event: stream, data: text, id: next }),
  cut: (from, to) => frame({ event: 'cut', data: json({ from, to }), id: to }),
  exit: ({ exit_code, cwd, duration_ms, ...rest }, at) =>
    frame({ event: 'exit', data: json({ exit_code, cwd, duration_ms, ...rest }), id: at }),
  interrupted: (error) =>
    `retry: ${RETRY_MS}\n${frame({ event: 'interrupted', data: json(toErrorReply(error, { ofExecution: false })) })}`,
};

/** The unnamed events that the IDE's client parses. */
export const DATA_FRAMES: EventFrames = {
  // Nothing to dispatch: that client may take an event of an unknown type for output. The header of the reply has the id.
  start: (_execId, from) => `id: ${from}\n\n`,
  piece: ({ stream, bytes, text, next }) =>
    frame({
      data: json({
        type: stream,
        data: text ?? bytes.toString(),
        ...(text === undefined ? { base64: bytes.toString('base64') } : {}),
      }),
      id: next,
    }),
  cut: (from, to) => frame({ data: json({ type: 'cut', from, to }), id: to }),
  exit: ({ changed_files: changedFiles = [], ...result }, at) =>
    frame({
      data: json({
        type: 'done',
        exitCode: result.exit_code,
        cwd: result.cwd,
        durationMs: result.duration_ms,
        changedFiles,
        result,
      }),
      id: at,
    }),
  interrupted: (error) =>
    `retry: ${RETRY_MS}\n${frame({ data: json({ type: 'interrupted', ...toErrorReply(error, { ofExecution: false }) }) })}`,
};

const json = (value: unknown): string => JSON.stringify(value);

/** The name first and the id last, so that the beginning is what simple parsers look for. */
function frame({ event, data, id }: { event?: string; data: string; id?: number }): string {
  const name = event === undefined ? '' : `event: ${event}\n`;
  const place = id === undefined ? '' : `id: ${id}\n`;
  return `${name}data: ${data.replaceAll('\n', '\ndata: ')}\n${place}\n`;
}
