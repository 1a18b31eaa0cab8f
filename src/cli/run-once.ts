import type { Config } from '../app/config.ts';
import { toLanguageTable } from '../app/language-table.ts';
import { toHotcellError } from '../core/errors.ts';
import type { RunResult } from '../runs/run.ts';
import type { RunOptions } from './commands/run.ts';
import { EXIT_CODES } from './exit-codes.ts';
import { readRunRequest } from './read-run-request.ts';
import { toRunJson } from './render/run-json.ts';
import { makeTerminalLog } from './terminal-log.ts';
import type { Terminal } from './terminal.ts';

const SIGNALS = [
  ['SIGINT', EXIT_CODES.interrupted],
  ['SIGTERM', EXIT_CODES.terminated],
  ['SIGHUP', EXIT_CODES.hangup],
] as const;

/** Runs one program through an engine of its own and resolves with the exit code. */
export async function runOnce(
  config: Config,
  command: { file: string; args: readonly string[]; options: RunOptions },
  terminal: Terminal,
): Promise<number> {
  const json = command.options.json === true;
  const request = await readRunRequest(
    command.file,
    command.args,
    command.options,
    toLanguageTable(config.languages),
  );
  using stop = listenForStop(terminal);
  const { startEngine } = await import('../app/engine.ts');
  const engine = await startEngine(
    // One run needs no cells in waiting.
    { ...config, pool: { ...config.pool, size: 0 } },
    {
      log: makeTerminalLog(config.logLevel, terminal),
      onProgress: (text) => {
        if (terminal.stderr.isTTY) terminal.note(`hotcell: ${text}`);
      },
    },
  );
  let result: RunResult;
  try {
    stop.signal.throwIfAborted();
    result = await engine.runs.run(request, {
      signal: stop.signal,
      ...(json ? {} : { onOutput: (stream, bytes) => terminal[stream].write(bytes) }),
    });
  } catch (error) {
    const exitCode = stop.exitCode();
    if (exitCode !== undefined) return exitCode;
    throw toHotcellError(error);
  } finally {
    await engine.close();
  }
  if (json) terminal.json(toRunJson(result));
  else explainEnd(result, config, terminal);
  return stop.exitCode() ?? result.exitCode;
}

/** A limit or a signal is said in words: the program itself could not. */
function explainEnd(result: RunResult, config: Config, terminal: Terminal): void {
  const { outcome, limitHit } = result;
  if (outcome.kind === 'signalled') terminal.note(`hotcell: ended by signal ${outcome.signal}`);
  // A program that reached a limit and went on well needs no explanation.
  if (limitHit === undefined || result.exitCode === 0) return;
  const verb = outcome.kind === 'limit' ? 'stopped at' : 'reached';
  terminal.note(`hotcell: ${verb} the limit ${limitHit} (${config.limits[limitHit]})`);
  terminal.note(`  → Allow more with ${FLAG_OF_LIMIT[limitHit] ?? `--set limits.${limitHit}=…`}`);
}

const FLAG_OF_LIMIT: Readonly<Record<string, string>> = { wallTimeMs: '--timeout', memoryBytes: '--memory' };

interface Stop extends Disposable {
  readonly signal: AbortSignal;
  /** Defined once somebody wanted the run to end. */
  exitCode(): number | undefined;
}

/** The first signal cancels the run and lets everything be cleaned up; a second one does not wait. */
function listenForStop(terminal: Terminal): Stop {
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
