import { EXIT_CODES } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

const SIGNALS = [
  ['SIGINT', EXIT_CODES.interrupted],
  ['SIGTERM', EXIT_CODES.terminated],
  ['SIGHUP', EXIT_CODES.hangup],
] as const;

export interface Stop extends Disposable {
  readonly signal: AbortSignal;
  /** Defined once somebody wanted the run to end. */
  exitCode(): number | undefined;
}

/** The first signal cancels the run and lets everything be cleaned up; a second one does not wait. */
export function listenForStop(terminal: Terminal): Stop {
  const controller = new AbortController();
  let exitCode: number | undefined;
  const listeners = SIGNALS.map(([name, code]) => {
    const listener = (): void => {
      if (exitCode !== undefined) process.exit(code);
      exitCode = code;
      controller.abort();
    };
    process.on(name, listener);
    return [name, listener] as const;
  });
  return {
    signal: AbortSignal.any([controller.signal, terminal.unread]),
    exitCode: () => exitCode ?? (terminal.unread.aborted ? EXIT_CODES.done : undefined),
    [Symbol.dispose]() {
      for (const [name, listener] of listeners) process.off(name, listener);
    },
  };
}
