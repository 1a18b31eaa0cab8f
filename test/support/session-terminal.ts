import { once } from 'node:events';
import { waitFor } from './leftovers.ts';
import type { TestServer } from './server.ts';

/** Somebody at a terminal of a session. */
export interface Terminal {
  type(text: string): void;
  /** Waits until this is to be seen. */
  shows(text: string): Promise<void>;
  /** The terminal has ended, or the connection has. */
  readonly closed: Promise<void>;
  close(): void;
}

/** A new terminal, or one more viewer of the one with this id. */
export async function openTerminal(
  server: Pick<TestServer, 'url'>,
  sessionId: string,
  execId?: string,
): Promise<Terminal> {
  const query = execId === undefined ? '' : `?exec_id=${execId}`;
  const url = `${server.url.replace('http', 'ws')}/v1/sessions/${sessionId}/terminal${query}`;
  const socket = new WebSocket(url, 'hotcell.terminal');
  socket.binaryType = 'arraybuffer';
  let seen = '';
  socket.addEventListener('message', ({ data }) => {
    if (data instanceof ArrayBuffer) seen += Buffer.from(data).toString();
  });
  socket.addEventListener('error', () => {});
  const closed = new Promise<void>((resolve) => socket.addEventListener('close', () => resolve()));
  const hasShown = (text: string): boolean => {
    if (seen.includes(text)) return true;
    // Nothing more can come.
    if (socket.readyState === WebSocket.CLOSED)
      throw new Error(`the terminal was closed before it showed ${text}`);
    return false;
  };
  // Whoever is refused hears of its end only.
  await Promise.race([once(socket, 'open'), once(socket, 'close')]);
  if (socket.readyState !== WebSocket.OPEN) throw new Error('the terminal was closed before it opened');
  return {
    type: (text) => socket.send(new TextEncoder().encode(text)),
    shows: (text) => waitFor(`the terminal shows ${text}`, () => hasShown(text)),
    closed,
    close: () => socket.close(),
  };
}
