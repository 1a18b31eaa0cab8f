import { Redactor } from '../environment/redactor.ts';
import type { Secret } from '../environment/secret.ts';
import type { AgentCommand } from './agent-call.ts';
import type { AgentEnd } from './agent-run.ts';
import { AgentWatch, type AgentListener } from './agent-watch.ts';
import type { RunResult } from './run-in-cell.ts';

/** Of what a program printed so much goes into the state, and to the next attempt. */
const WORDS_KEPT = 4000;

/**
 * Hears what an agent prints, and makes words and figures of it.
 * SECURITY: what is passed on and kept has no secret in it any more.
 */
export class AgentEars {
  readonly #redactors: Readonly<Record<'stdout' | 'stderr', Redactor>>;
  readonly #watch: AgentWatch | undefined;
  readonly #listener: AgentListener;

  constructor(speaks: AgentCommand['speaks'], secrets: readonly Secret[], listener: AgentListener) {
    this.#redactors = { stdout: new Redactor(secrets), stderr: new Redactor(secrets) };
    this.#listener = listener;
    this.#watch = speaks === 'text' ? undefined : new AgentWatch(listener);
  }

  hear(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    this.#pass(stream, this.#redactors[stream].push(bytes));
  }

  #pass(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    if (stream === 'stdout' && this.#watch !== undefined) this.#watch.push(bytes);
    else if (bytes.length > 0) this.#listener.onOutput(bytes);
  }

  end(result: RunResult): AgentEnd {
    for (const stream of ['stdout', 'stderr'] as const) this.#pass(stream, this.#redactors[stream].flush());
    this.#watch?.end();
    const stdout = this.#redactors.stdout.text(result.stdout);
    const stderr = this.#redactors.stderr.text(result.stderr);
    const answer = this.#watch?.words ?? stdout;
    return {
      ...result,
      stdout,
      stderr,
      answer,
      words: `${answer.slice(-WORDS_KEPT)}\n${stderr.slice(-WORDS_KEPT)}`.trim().slice(-WORDS_KEPT),
      problem: this.#watch?.problem,
      figures: this.#watch?.figures,
    };
  }
}
