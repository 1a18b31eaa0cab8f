import type { HttpRunnerClient } from '../../client/http-runner-client.ts';
import type { ExecRequest } from '../../client/runner-client.ts';
import { RunnerError } from '../../client/runner-error.ts';
import type { ExecResult } from '../../wire/session-exec.ts';
import { EXIT_CODES } from '../exit-codes.ts';
import { listenForStop } from '../listen-for-stop.ts';
import { toPrintable } from '../../lib/printable.ts';
import type { Terminal } from '../terminal.ts';

export interface ExecWish {
  readonly sessionId: string;
  readonly request: ExecRequest;
  /** Input that is passed while the command runs; then it runs beside others. */
  readonly input: AsyncIterable<Uint8Array> | undefined;
  readonly json: boolean;
}

/** Runs a command as if it ran here: its bytes, its exit code; Ctrl-C ends it. */
export async function execCommand(
  client: HttpRunnerClient,
  { sessionId, request, input, json }: ExecWish,
  terminal: Terminal,
): Promise<number> {
  using stop = listenForStop(terminal);
  const options = { signal: stop.signal, killOnAbort: true };
  try {
    if (json && input === undefined) {
      const reply = await client.exec(sessionId, request, options);
      terminal.json(reply);
      return toExitCode(reply);
    }
    const body = input === undefined ? request : { ...request, background: true };
    for await (const event of client.execStream(sessionId, body, options)) {
      if (event.type === 'start' && input !== undefined)
        void feed(client, { sessionId, execId: event.execId, input });
      else if (event.type === 'stdout' || event.type === 'stderr') {
        await write(terminal, event.type, event.bytes);
      } else if (event.type === 'cut') {
        terminal.note(
          `hotcell: ${event.to - event.from} bytes of output are missing here: the server did not keep them`,
        );
      } else if (event.type === 'exit') {
        explainEnd(event.result, terminal);
        return toExitCode(event.result);
      }
    }
    return EXIT_CODES.ours;
  } catch (error) {
    const exitCode = stop.exitCode();
    const isOurs = error instanceof RunnerError && error.code === 'CANCELLED';
    if (exitCode !== undefined && isOurs) return exitCode;
    throw error;
  }
}

/** Waits where nobody reads as fast as the command writes. */
export async function write(
  terminal: Terminal,
  stream: 'stdout' | 'stderr',
  bytes: Uint8Array,
): Promise<void> {
  const target = terminal[stream];
  if (target.write(bytes) || terminal.unread.aborted) return;
  const drained = Promise.withResolvers<void>();
  const finish = (): void => drained.resolve();
  target.once('drain', finish);
  terminal.unread.addEventListener('abort', finish, { once: true });
  await drained.promise;
  target.off('drain', finish);
  terminal.unread.removeEventListener('abort', finish);
}

interface Feeding {
  readonly sessionId: string;
  readonly execId: string;
  readonly input: AsyncIterable<Uint8Array>;
}

/** Passes input on until it ends or the command does; how the command ends is told by its own stream. */
async function feed(client: HttpRunnerClient, { sessionId, execId, input }: Feeding): Promise<void> {
  try {
    for await (const bytes of input) await client.writeStdin(sessionId, execId, bytes);
    await client.writeStdin(sessionId, execId, '', { eof: true });
  } catch (error) {
    const hasEnded = error instanceof RunnerError && error.code === 'EXEC_ENDED';
    // Input that is lost in the middle would be taken for the end of it.
    if (!hasEnded) await client.killExec(sessionId, execId).catch(() => undefined);
  }
}

/** -1 stands for an end that nobody saw, which is no code of the command's. */
export function toExitCode({ exit_code: code }: Pick<ExecResult, 'exit_code'>): number {
  return code < 0 ? EXIT_CODES.ours : code;
}

/** What the command itself could not say. */
export function explainEnd(result: ExecResult, terminal: Terminal): void {
  const say = (text: string): void => terminal.note(`hotcell: ${toPrintable(text)}`);
  if (result.end.reason !== 'exit') say(result.end.message);
  if (result.limits_reached.length > 0 && !result.ok)
    say(`reached its limit of ${result.limits_reached.join(', ')}`);
  if (result.cwd_note !== null) say(result.cwd_note);
  for (const { host, port, reason } of result.egress_refused) say(`no way to ${host}:${port}: ${reason}`);
}
