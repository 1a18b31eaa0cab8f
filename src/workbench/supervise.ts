import type { ExecEvent, KillCause } from '../core/exec.ts';
import type { StartedExec } from './waiting-bun.ts';

export interface Supervision {
  readonly stdin: string | undefined;
  readonly wallTimeMs: number;
  readonly outputBytes: number;
  readonly signal: AbortSignal;
  onOutput(stream: 'stdout' | 'stderr', bytes: Uint8Array): void;
  /** The command cannot be killed: ends its cell. */
  giveUp(): void;
}

export type ExitEvent = Extract<ExecEvent, { type: 'exit' }>;

/** Stays with a command to its end: clock, output and caller are watched here. Throws when the cell is lost. */
export async function supervise({ exec, events }: StartedExec, options: Supervision): Promise<ExitEvent> {
  const kill = (cause: KillCause): void => {
    exec.kill(cause).catch(() => options.giveUp());
  };
  const timer = setTimeout(() => kill('wallTimeMs'), options.wallTimeMs);
  const cancel = (): void => kill('cancelled');
  options.signal.addEventListener('abort', cancel);
  try {
    if (options.stdin !== undefined && options.stdin !== '') exec.write(Buffer.from(options.stdin));
    exec.closeStdin();
    if (options.signal.aborted) cancel();
    let room = options.outputBytes;
    for await (const event of events) {
      if (event.type === 'exit') return event;
      options.onOutput(event.type, event.bytes);
      if (room >= 0 && (room -= event.bytes.length) < 0) kill('outputBytes');
    }
    throw new Error('the events of an exec ended without exit');
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener('abort', cancel);
    exec.forget();
  }
}
