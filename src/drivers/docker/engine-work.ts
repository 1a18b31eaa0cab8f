import type Docker from 'dockerode';
import type { Engine } from './engine.ts';
import { readEngineMessages, type EngineMessage } from './engine-messages.ts';
import { SilenceWatch } from './silence-watch.ts';

/** The whole may take as long as it likes; only the silence is watched. */
const WHOLE_MS = 24 * 60 * 60_000;

/** Something long that an engine tells about while it does it. */
export interface EngineWork {
  /** For people: "pull python:3.12-slim". */
  readonly what: string;
  /** Longest time without a word. */
  readonly silenceMs: number;
  start(docker: Docker, signal: AbortSignal): Promise<NodeJS.ReadableStream>;
  onMessage(message: EngineMessage): void;
}

/** The engine began, and then said nothing more. */
export class EngineSilence extends Error {
  constructor(silenceMs: number) {
    super(`nothing came for ${silenceMs / 1000} s`);
    this.name = 'EngineSilence';
  }
}

/** Waits for the end of the work. Throws as Engine.call does, and EngineSilence. */
export async function followEngineWork(engine: Engine, work: EngineWork): Promise<void> {
  using watch = new SilenceWatch(work.silenceMs);
  try {
    await engine.call(
      work.what,
      async (docker, { abortSignal }) => {
        // Ending the request ends the work in the engine too.
        const signal = AbortSignal.any([abortSignal, watch.signal]);
        const stream = await watch.orSilence(work.start(docker, signal));
        await readEngineMessages(watch.listen(stream), work.what, (message) => work.onMessage(message));
      },
      WHOLE_MS,
    );
  } catch (error) {
    if (watch.signal.aborted) throw new EngineSilence(work.silenceMs);
    throw error;
  }
}
