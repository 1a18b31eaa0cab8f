import type { TerminalSize } from '../core/exec.ts';
import { SessionReply } from '../wire/sessions.ts';
import { KEY_PROTOCOL_PREFIX, TERMINAL_PROTOCOL } from '../wire/terminal.ts';
import { toBase64Url } from './base64.ts';
import type { HttpTransport } from './http-transport.ts';
import { RunnerError } from './runner-error.ts';
import { TerminalConnection, type Attach } from './terminal-connection.ts';

export interface TerminalOptions extends TerminalSize, Attach {
  /** Instead of a shell, for a new one. */
  readonly command?: string | undefined;
}

interface SessionTarget {
  readonly transport: HttpTransport;
  /** Of the session. */
  readonly path: string;
  readonly apiKey: string | undefined;
}

/** Resolves when the terminal is there. */
export function openTerminal(target: SessionTarget, options: TerminalOptions): Promise<TerminalConnection> {
  const { transport, path, apiKey } = target;
  const { rows, columns, command } = options;
  // A browser can send no headers with a WebSocket, so the key goes as the name of a protocol.
  const key = apiKey === undefined ? [] : [toBase64Url(new TextEncoder().encode(apiKey))];
  const protocols = [TERMINAL_PROTOCOL, ...key.map((text) => KEY_PROTOCOL_PREFIX + text)];
  return TerminalConnection.open(
    {
      connect: (size, { execId, from }) => {
        const start = execId === undefined ? { command } : { exec_id: execId };
        const query = { rows: size.rows, cols: size.columns, from, ...start };
        return new WebSocket(transport.url({ path: `${path}/terminal`, query }, 'ws'), protocols);
      },
      explain: (execId) => explain(target, execId),
      retries: transport.retries,
      tell: (notice) => transport.tell(notice),
    },
    { rows, columns },
    options,
  );
}

async function explain({ transport, path }: SessionTarget, execId: string | undefined): Promise<void> {
  const request = { method: 'GET', once: true } as const;
  if (execId !== undefined) {
    const ofExec = { ...request, path: `${path}/execs/${encodeURIComponent(execId)}` };
    await transport.send(ofExec, (response) => response.text());
    return;
  }
  const { state } = await transport.json({ ...request, path }, SessionReply);
  if (state !== 'paused') return;
  throw new RunnerError('SESSION_PAUSED', 'the session is paused', { status: 409, hint: 'Resume it first.' });
}
