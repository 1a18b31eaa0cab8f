import type { ServerResponse } from 'node:http';
import { HotcellError } from '../core/errors.ts';

/** Answers that take long, so that the stop of the server can end them with a word instead of a cut connection. */
export class OpenStreams {
  readonly #open = new Set<AbortController>();
  #stop: HotcellError | undefined;

  /** Aborts when the client goes away before it has its answer and, with an error of ours as reason, when the server stops. */
  signalOf(response: ServerResponse): AbortSignal {
    const controller = this.open();
    const onClose = (): void => {
      this.close(controller);
      if (!response.writableFinished) controller.abort();
    };
    if (response.destroyed) onClose();
    else response.once('close', onClose);
    return controller.signal;
  }

  /** Aborts when the server stops. */
  open(): AbortController {
    const controller = new AbortController();
    if (this.#stop === undefined) this.#open.add(controller);
    else controller.abort(this.#stop);
    return controller;
  }

  close(controller: AbortController): void {
    this.#open.delete(controller);
  }

  stop(): void {
    this.#stop = new HotcellError('SHUTTING_DOWN', 'the server is stopping');
    for (const controller of this.#open) controller.abort(this.#stop);
    this.#open.clear();
  }
}
