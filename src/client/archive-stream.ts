import { networkError, reasonOf } from './runner-error.ts';

/** The body of an answer; a failure on the way is one of ours, and says that the archive is not complete. */
export function toArchiveStream({ body }: Response): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob().stream()).getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(networkError(`the archive is not complete: ${reasonOf(error)}`, error));
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
