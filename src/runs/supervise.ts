import type { ExecOutcome, KillCause, Usage } from '../core/exec.ts';
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

/** Hands the job to a waiting cell and stays with it to the end: clock, output and caller are watched here. */
export async function supervise(hot: HotCell, options: Supervision): Promise<Supervised> {
  const stdout = new CappedBytes(options.keptBytes);
  const stderr = new CappedBytes(options.keptBytes);
  const startedAt = performance.now();
  // A kill that fails must not end the server, and the program must end all the same.
  const kill = (cause: KillCause): void => {
    hot.main.kill(cause).catch(() => hot.cell.dispose().catch(() => {}));
  };
  const timer = setTimeout(() => kill('wallTimeMs'), options.wallTimeMs);
  const cancel = (): void => kill('cancelled');
  options.signal.addEventListener('abort', cancel);
  try {
    hot.main.write(options.input);
    if (options.stdin.length > 0) hot.main.write(options.stdin);
    hot.main.closeStdin();
    if (options.signal.aborted) cancel();
    let flooded = false;
    for await (const event of hot.main.events) {
      if (event.type === 'exit') {
        const { outcome, usage } = event;
        return { outcome, usage, stdout, stderr, wallTimeMs: performance.now() - startedAt };
      }
      (event.type === 'stdout' ? stdout : stderr).push(event.bytes);
      options.onOutput?.(event.type, event.bytes);
      if (!flooded && stdout.total + stderr.total > options.outputBytes) {
        flooded = true;
        kill('outputBytes');
      }
    }
    throw new Error('the events of an exec ended without exit');
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener('abort', cancel);
  }
}
