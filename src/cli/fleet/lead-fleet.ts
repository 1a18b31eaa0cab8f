import { EXIT_CODES } from '../exit-codes.ts';
import { listenForStop } from '../listen-for-stop.ts';
import { ProgressLine } from '../progress-line.ts';
import type { CommandContext } from '../program.ts';
import { toPrintable } from '../../lib/printable.ts';
import { readSettings } from '../settings-options.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import { toSettings, type AgentOptions } from './agent-options.ts';
import { describeEvent } from './describe-event.ts';
import { renderReport } from './render-report.ts';

export interface LeadOptions extends AgentOptions {
  readonly feature?: string;
  readonly workers?: number;
  readonly taskGraph?: string;
  readonly level?: number;
  readonly timeout?: number;
  readonly verbose?: true;
}

/** `run` and `resume`: what happens goes to stderr line by line, the report at the end to stdout. */
export async function leadFleet(
  context: CommandContext,
  options: LeadOptions,
  resume: boolean,
): Promise<void> {
  const { terminal, outcome: left } = context;
  const { config } = await readSettings(toSettings(options), left);
  const [{ runFleet }, { fleetMachine }, { toFinalReport }] = await Promise.all([
    import('../../fleet/run/run-fleet.ts'),
    import('../../app/fleet/fleet-machine.ts'),
    import('../../fleet/status/final-report.ts'),
  ]);
  using stop = listenForStop(terminal);
  using progress = new ProgressLine(terminal);
  const say = (text: string): void => {
    progress.clear();
    terminal.note(`fleet: ${toPrintable(text)}`);
  };
  const timeout = options.timeout === undefined ? [] : [AbortSignal.timeout(options.timeout * 1000)];
  const result = await runFleet(
    fleetMachine(config),
    {
      ...options,
      folder: process.cwd(),
      resume,
      signal: AbortSignal.any([stop.signal, ...timeout]),
    },
    {
      log: makeTerminalLog(options.verbose === true ? 'debug' : 'warn', terminal),
      onProgress: (text) => progress.show(`fleet: ${toPrintable(text)}`),
      onNote: say,
      onDetail: options.verbose === true ? say : () => {},
      onEvent: (event, data) => {
        const text = describeEvent(event, data, options.verbose === true);
        if (text !== undefined) say(text);
      },
    },
  );
  const { outcome, state, prepared } = result;
  const report = toFinalReport(state, prepared.graph, new Date());
  if (options.json === true) terminal.json({ outcome: outcome.kind, ...report });
  else renderReport(terminal, report);
  switch (outcome.kind) {
    case 'complete':
      say(
        `${state.feature} is complete on its branch. hotcell fleet merge carries it into ${state.target_branch ?? 'yours'}.`,
      );
      return;
    case 'level-complete':
      say(`level ${outcome.level} is complete. hotcell fleet resume goes on.`);
      return;
    case 'stopped':
      left.exitCode = stop.exitCode() ?? EXIT_CODES.unhealthy;
      say('stopped; nothing that was committed is lost. hotcell fleet resume goes on.');
      return;
    case 'paused':
      throw outcome.error;
  }
}
