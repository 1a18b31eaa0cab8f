/** One line for people about what is under way. */
export type OnProgress = (text: string) => void;

type Pull = (onProgress: OnProgress) => Promise<void>;

interface Flight {
  readonly done: Promise<void>;
  readonly listeners: Set<OnProgress>;
}

export interface SharedPullsOptions {
  /** How long a failure is the answer to everybody, so that callers who retry do not hammer a registry. */
  readonly failureKeptMs: number;
  now(): number;
  /** Whether trying again soon would be in vain. */
  isLasting(error: unknown): boolean;
}

/** Callers who want the same image share one pull and its progress, and for a while its failure. */
export class SharedPulls {
  readonly #options: SharedPullsOptions;
  readonly #flights = new Map<string, Flight>();
  readonly #failures = new Map<string, { readonly error: unknown; readonly until: number }>();

  constructor(options: SharedPullsOptions) {
    this.#options = options;
  }

  async join(image: string, onProgress: OnProgress, pull: Pull): Promise<void> {
    const failure = this.#failures.get(image);
    if (failure !== undefined && this.#options.now() < failure.until) throw failure.error;
    this.#failures.delete(image);
    const flight = this.#flights.get(image);
    flight?.listeners.add(onProgress);
    await (flight?.done ?? this.#begin(image, onProgress, pull));
  }

  /** Something has changed: everything is worth another try. */
  forgetFailures(): void {
    this.#failures.clear();
  }

  #begin(image: string, onProgress: OnProgress, pull: Pull): Promise<void> {
    const listeners = new Set([onProgress]);
    const done = this.#fly(image, listeners, pull);
    this.#flights.set(image, { done, listeners });
    return done;
  }

  async #fly(image: string, listeners: ReadonlySet<OnProgress>, pull: Pull): Promise<void> {
    // Not before the flight is noted: whoever comes meanwhile must find it.
    await Promise.resolve();
    try {
      await pull((text) => {
        for (const listener of listeners) listener(text);
      });
    } catch (error) {
      if (this.#options.isLasting(error)) {
        this.#failures.set(image, { error, until: this.#options.now() + this.#options.failureKeptMs });
      }
      throw error;
    } finally {
      this.#flights.delete(image);
    }
  }
}
