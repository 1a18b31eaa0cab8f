import { bytesOfChunk, type HttpRunnerClient } from '../../client/http-runner-client.ts';
import { RunnerError } from '../../client/runner-error.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { Terminal } from '../terminal.ts';
import { explainEnd, write } from './exec-command.ts';

interface Reading {
  readonly sessionId: string;
  readonly execId: string;
  readonly from: number;
}

/** Prints the output of a command: what is kept, or everything until its end. Without an id, that of the latest one. */
export async function readLogs(
  client: HttpRunnerClient,
  wish: {
    readonly sessionId: string;
    readonly execId: string | undefined;
    readonly from: number;
    readonly follow: boolean;
  },
  terminal: Terminal,
): Promise<void> {
  const { sessionId, from } = wish;
  const reading = { sessionId, execId: wish.execId ?? (await latestExec(client, sessionId)), from };
  if (wish.follow) await follow(client, reading, terminal);
  else await printKept(client, reading, terminal);
}

async function latestExec(client: HttpRunnerClient, sessionId: string): Promise<string> {
  const execs = await client.listExecs(sessionId);
  const latest = execs.toSorted((one, other) => (one.started_at < other.started_at ? -1 : 1)).at(-1);
  if (latest !== undefined) return latest.exec_id;
  throw new RunnerError('EXEC_UNKNOWN', 'no command has run in this session', {
    hint: `Run one with hotcell session exec ${sessionId} 'ls'`,
  });
}

async function follow(client: HttpRunnerClient, reading: Reading, terminal: Terminal): Promise<void> {
  using stop = listenForStop(terminal);
  const { sessionId, execId, from } = reading;
  try {
    for await (const event of client.followExec(sessionId, execId, { from, signal: stop.signal })) {
      if (event.type === 'stdout' || event.type === 'stderr') await write(terminal, event.type, event.bytes);
      else if (event.type === 'cut') sayCut(event, terminal);
      else if (event.type === 'exit') explainEnd(event.result, terminal);
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  }
}

async function printKept(client: HttpRunnerClient, reading: Reading, terminal: Terminal): Promise<void> {
  const { sessionId, execId } = reading;
  for (let { from } = reading; ;) {
    const { chunks, cut, next, result } = await client.readOutput(sessionId, execId, { from });
    for (const range of cut) sayCut(range, terminal);
    for (const chunk of chunks) await write(terminal, chunk.stream, bytesOfChunk(chunk));
    if (result !== null) explainEnd(result, terminal);
    if (result !== null || next <= from || terminal.unread.aborted) return;
    from = next;
  }
}

function sayCut({ from, to }: { readonly from: number; readonly to: number }, terminal: Terminal): void {
  terminal.note(`hotcell: ${to - from} bytes of output from byte ${from} on are not kept`);
}
