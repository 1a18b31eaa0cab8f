import type { ExecOutcome, KillCause, ReachableLimit, Usage } from '../../core/exec.ts';

/**
 * The figures of an agent, by name: `wait` (as waitpid has it), `cpu_us` and `rss` of the command, `peak` and
 * `cell_cpu_us` of the whole cell, `oom` and `pids` (how often a limit was reached meanwhile), `full` (per cent of /tmp),
 * `expired` (1 if it was ended at its deadline).
 */
export type Figures = ReadonlyMap<string, number>;

export function parseFigures(payload: Uint8Array): Figures {
  const words = Buffer.from(payload).toString('latin1').split(' ');
  const pairs = words.flatMap((word) => {
    const match = /^([a-z_]+)=(\d{1,15})$/.exec(word);
    return match === null ? [] : [[match[1] ?? '', Number(match[2])] as const];
  });
  return new Map(pairs);
}

/** What a command used. Alone in its cell, it used what the kernel counted for the cell. */
export function toUsage(figures: Figures, alone: boolean, reached: readonly ReachableLimit[]): Usage {
  const cpuUs = (alone ? figures.get('cell_cpu_us') : undefined) ?? figures.get('cpu_us') ?? 0;
  const full = figures.get('full');
  return {
    cpuMs: cpuUs / 1000,
    peakMemoryBytes: (alone ? figures.get('peak') : undefined) ?? figures.get('rss'),
    reached,
    ...(full === undefined ? {} : { diskShare: full / 100 }),
  };
}

export function toReached(figures: Figures): ReachableLimit[] {
  const reached: ReachableLimit[] = [];
  if ((figures.get('oom') ?? 0) > 0) reached.push('memoryBytes');
  if ((figures.get('pids') ?? 0) > 0) reached.push('processes');
  return reached;
}

/** The agent itself kept the deadline of the command, because nobody else did. */
export function toOwnCause(figures: Figures): KillCause | undefined {
  return figures.get('expired') === 1 ? 'wallTimeMs' : undefined;
}

const SIGKILL = 9;

/** Whoever had to be killed cannot have the last word. */
export function toOutcome(
  figures: Figures,
  cause: KillCause | undefined,
  reached: readonly ReachableLimit[],
): ExecOutcome {
  if (cause !== undefined) return toKilledOutcome(cause);
  const wait = figures.get('wait') ?? 0;
  const signal = wait & 0x7f;
  if (signal === SIGKILL && reached.includes('memoryBytes')) return { kind: 'limit', limit: 'memoryBytes' };
  return signal === 0 ? { kind: 'exited', code: (wait >> 8) & 0xff } : { kind: 'signalled', signal };
}

export function toKilledOutcome(cause: KillCause): ExecOutcome {
  return cause === 'cancelled' ? { kind: 'cancelled' } : { kind: 'limit', limit: cause };
}
