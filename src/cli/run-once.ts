import type { Config } from '../app/config/config.ts';
import { toLanguageTable } from '../app/config/language-table.ts';
import { toHotcellError } from '../core/errors.ts';
import type { RunResult } from '../runs/run.ts';
import type { RunOptions } from './commands/run.ts';
import { listenForStop } from './listen-for-stop.ts';
import { readRunRequest } from './read-run-request.ts';
import { toRunJson } from './render/run-json.ts';
import { makeTerminalLog } from './terminal-log.ts';
import type { Terminal } from './terminal.ts';

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
    // One run needs no cells in waiting, and sessions are a server's.
    {
      ...config,
      pool: { ...config.pool, size: 0 },
      sessions: { ...config.sessions, enabled: false },
    },
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
