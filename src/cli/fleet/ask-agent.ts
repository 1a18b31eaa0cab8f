import { HotcellError } from '../../core/errors.ts';
import type { AgentReply } from '../../fleet/planning/ask-agent.ts';
import type { OpenPlanning } from '../../fleet/planning/open-planning.ts';
import { listenForStop } from '../listen-for-stop.ts';
import type { CommandContext } from '../program.ts';
import { toPrintable } from '../../lib/printable.ts';
import { readSettings } from '../settings-options.ts';
import { makeTerminalLog } from '../terminal-log.ts';
import { toSettings, type AgentOptions } from './agent-options.ts';
import type { AgentProgress } from './agent-progress.ts';

export interface Asking extends CommandContext {
  readonly planning: OpenPlanning;
  readonly options: AgentOptions;
  readonly progress: AgentProgress;
}

/** Asks the agent of this repository, in a cell as workers have them. Ctrl-C ends the agent and removes the cell. */
export async function askAgent(asking: Asking, prompt: string): Promise<AgentReply> {
  const { planning, options, terminal, outcome, progress } = asking;
  const { config } = await readSettings(toSettings(options), outcome);
  const [{ askAgentOnce }, { fleetMachine }] = await Promise.all([
    import('../../fleet/planning/ask-agent-once.ts'),
    import('../../app/fleet/fleet-machine.ts'),
  ]);
  using stop = listenForStop(terminal);
  const { root, feature } = planning;
  const log = makeTerminalLog(config.logLevel, terminal);
  const reply = await askAgentOnce(
    fleetMachine(config),
    { root, feature, prompt, wish: options, signal: stop.signal },
    {
      log,
      onProgress: (text) => progress.show(text),
      onWork: (text) => progress.detail(text),
      onNote: (text) => terminal.note(`fleet: ${toPrintable(text)}`),
    },
  );
  if (stop.exitCode() !== undefined) throw new HotcellError('CANCELLED', 'the agent was ended');
  return reply;
}
