import { HotcellError } from '../../core/errors.ts';
import type { RunResult } from '../worker/run-in-cell.ts';

/** What an agent has said to one question. Nobody has to trust it. */
export type AgentReply = Pick<RunResult, 'code' | 'stdout' | 'stderr'>;

/** Runs the agent once, in a cell that sees the repository as it was committed. */
export type AskAgent = (prompt: string) => Promise<AgentReply>;

const LAST_WORDS = 2000;

/** What the agent has said, if it has done what it was asked. */
export async function askFor(ask: AskAgent, prompt: string): Promise<string> {
  const { code, stdout, stderr } = await ask(prompt);
  if (code === 0 && stdout.trim() !== '') return stdout;
  const words = (stderr.trim() === '' ? stdout : stderr).trim().slice(-LAST_WORDS);
  const what = code === 0 ? 'the agent has said nothing' : `the agent ended with exit code ${code}`;
  throw new HotcellError('AGENT_FAILED', words === '' ? what : `${what}:\n${indent(words)}`);
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '  | ');
}
