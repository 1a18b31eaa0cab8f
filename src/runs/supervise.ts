import { attend } from '../cells/run-to-end.ts';
import type { ExecOutcome, Usage } from '../core/exec.ts';
import { CappedBytes } from '../lib/capped-bytes.ts';
import type { HotCell } from '../pool/hot-cell.ts';
import type { OutputListener } from './run.ts';

export interface Supervision {
  readonly input: Uint8Array;
  readonly stdin: Uint8Array;
  readonly wallTimeMs: number;
  readonly outputBytes: number;
  readonly keptBytes: number;
  readonly signal: AbortSignal;
  readonly onOutput: OutputListener | undefined;
}

export interface Supervised {
  readonly outcome: ExecOutcome;
  readonly usage: Usage;
  readonly stdout: CappedBytes;
  readonly stderr: CappedBytes;
  readonly wallTimeMs: number;
}

/** Hands the job to a waiting cell and stays with it to the end. */
export async function supervise(hot: HotCell, options: Supervision): Promise<Supervised> {
  const stdout = new CappedBytes(options.keptBytes);
  const stderr = new CappedBytes(options.keptBytes);
  const startedAt = performance.now();
  hot.main.write(options.input);
  if (options.stdin.length > 0) hot.main.write(options.stdin);
  hot.main.closeStdin();
  const { outcome, usage } = await attend(hot.main, {
    timeMs: options.wallTimeMs,
    outputBytes: options.outputBytes,
    signal: options.signal,
    onOutput: (stream, bytes) => {
      (stream === 'stdout' ? stdout : stderr).push(bytes);
      options.onOutput?.(stream, bytes);
    },
    // The program must end all the same.
    onUnkillable: () => void hot.cell.dispose().catch(() => {}),
  });
  return { outcome, usage, stdout, stderr, wallTimeMs: performance.now() - startedAt };
}
