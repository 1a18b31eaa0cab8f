import type { AgentCommand } from './agent-call.ts';
import type { AgentEnd } from './agent-run.ts';
import { AgentWatch, type AgentListener } from './agent-watch.ts';
import type { RunResult } from './run-in-cell.ts';

/** Of what a program printed so much goes into the state, and to the next attempt. */
const WORDS_KEPT = 4000;

/** Hears what an agent prints, and makes words and figures of it. */
export class AgentEars {
  readonly #watch: AgentWatch | undefined;
  readonly #listener: AgentListener;

  constructor(speaks: AgentCommand['speaks'], listener: AgentListener) {
    this.#listener = listener;
    this.#watch = speaks === 'text' ? undefined : new AgentWatch(listener);
  }

  hear(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    if (stream === 'stdout' && this.#watch !== undefined) this.#watch.push(bytes);
    else this.#listener.onOutput(bytes);
  }

  end(result: RunResult): AgentEnd {
    this.#watch?.end();
    const { stdout, stderr } = result;
    const answer = this.#watch?.words ?? stdout;
    return {
      ...result,
      answer,
      words: `${answer.slice(-WORDS_KEPT)}\n${stderr.slice(-WORDS_KEPT)}`.trim().slice(-WORDS_KEPT),
      problem: this.#watch?.problem,
      figures: this.#watch?.figures,
    };
  }
}
