import { HotcellError } from '../core/errors.ts';
import type { ExecRequest } from '../core/exec.ts';
import { readOutcome } from './read-outcome.ts';
import { runToEnd, type Attention, type Starter } from './run-to-end.ts';

/** What a command prints, as it comes and no faster than it is read. Fails with CELL_LOST when the command does. */
export function printedBy(
  cell: Starter,
  request: ExecRequest,
  attention: Omit<Attention, 'onOutput'>,
): AsyncIterable<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const onOutput = (stream: 'stdout' | 'stderr', bytes: Uint8Array): Promise<void> | undefined =>
    stream === 'stdout' ? writer.write(bytes) : undefined;
  const print = async (): Promise<void> => {
    const { outcome } = await runToEnd(cell, request, { ...attention, onOutput });
    const { ok, reason } = readOutcome(outcome);
    if (!ok) throw new HotcellError('CELL_LOST', `${request.argv[0]} did not print all of it (${reason})`);
    await writer.close();
  };
  // Whoever reads is told; whoever has stopped reading does not want to know.
  print().catch((error: unknown) => writer.abort(error).catch(() => {}));
  return readable;
}
