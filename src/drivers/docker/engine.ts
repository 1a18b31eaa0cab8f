import type Docker from 'dockerode';
import { HotcellError, messageOf } from '../../core/errors.ts';
import { errnoOf } from '../../lib/errno.ts';
import type { Endpoint } from './endpoint.ts';

const CALL_MS = 30_000;
const LONGEST_WORDS = 600;
const UNREACHABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOENT|EACCES|EPIPE|ENOTFOUND|EHOSTUNREACH|ETIMEDOUT|EAI_AGAIN)$/;

/** Options that every call of dockerode takes, though its types do not say so of all. */
export interface CallOptions {
  readonly abortSignal: AbortSignal;
}

/** One engine. Every call has an end: an engine that hangs must not hang us. */
export class Engine {
  readonly endpoint: Endpoint;
  readonly #docker: Docker;

  private constructor(endpoint: Endpoint, docker: Docker) {
    this.endpoint = endpoint;
    this.#docker = docker;
  }

  /** Loads the client library only now: it is large, and other drivers do without it. */
  static async connect(endpoint: Endpoint): Promise<Engine> {
    const { default: Client } = await import('dockerode');
    return new Engine(endpoint, new Client({ ...endpoint.connection }));
  }

  /**
   * Makes one call. `what` is for people: "create a container". Throws DRIVER_UNAVAILABLE when the engine does not
   * answer, and an EngineRefusal when it answers with an error.
   */
  async call<T>(
    what: string,
    action: (docker: Docker, options: CallOptions) => Promise<T>,
    timeoutMs = CALL_MS,
  ): Promise<T> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), timeoutMs);
    // A request that hangs while it is being sent does not always notice the abort.
    const tooLate = new Promise<never>((_, reject) => {
      controller.signal.addEventListener('abort', () =>
        reject(this.#unavailable(what, `no answer in ${timeoutMs / 1000} s`)),
      );
    });
    try {
      return await Promise.race([action(this.#docker, { abortSignal: controller.signal }), tooLate]);
    } catch (error) {
      throw this.#translate(what, error);
    } finally {
      clearTimeout(timer);
    }
  }

  #translate(what: string, error: unknown): Error {
    if (error instanceof HotcellError || error instanceof EngineRefusal) return error;
    const status = statusCodeOf(error);
    if (status !== undefined) return new EngineRefusal(what, status, wordsOf(error));
    const errno = errnoOf(error);
    if (errno !== undefined && UNREACHABLE.test(errno))
      return this.#unavailable(what, messageOf(error), error);
    return new EngineRefusal(what, 500, messageOf(error));
  }

  #unavailable(what: string, why: string, cause?: unknown): HotcellError {
    return new HotcellError(
      'DRIVER_UNAVAILABLE',
      `the engine at ${this.endpoint.label} cannot ${what}: ${why}`,
      {
        hint: toRemedy(this.endpoint, cause),
        cause,
      },
    );
  }
}

/** The engine answered, and the answer was no. */
export class EngineRefusal extends Error {
  readonly status: number;
  /** The engine's own words. */
  readonly words: string;

  constructor(what: string, status: number, words: string) {
    // Some engines give back the whole request.
    const shown = words.length > LONGEST_WORDS ? `${words.slice(0, LONGEST_WORDS)} …` : words;
    super(`the engine cannot ${what}: ${shown}`);
    this.name = 'EngineRefusal';
    this.status = status;
    this.words = shown;
  }
}

/** Was it refused with one of these? 404: there is no such thing; 409: somebody is at it already. */
export function isRefusal(error: unknown, ...statuses: readonly number[]): boolean {
  return error instanceof EngineRefusal && statuses.includes(error.status);
}

function toRemedy(endpoint: Endpoint, cause: unknown): string {
  if (cause === undefined) return 'It is there but does not answer: look at its log, or restart it.';
  if (errnoOf(cause) === 'EACCES')
    return `sudo usermod -aG docker "$USER", then log in again; or run as root`;
  return endpoint.local
    ? 'Start the engine: sudo systemctl start docker, or Docker Desktop; install it: apt-get install -y docker.io'
    : `Check ${endpoint.origin}: an engine must listen there.`;
}

function statusCodeOf(error: unknown): number | undefined {
  const isNumbered = error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
  return isNumbered ? Number(error.statusCode) : undefined;
}

/** dockerode wraps the engine's message in one of its own. */
function wordsOf(error: unknown): string {
  if (typeof error === 'object' && error !== null && 'json' in error) {
    const { json } = error;
    if (typeof json === 'object' && json !== null && 'message' in json) return String(json.message).trim();
  }
  return messageOf(error)
    .replace(/^\(HTTP code \d+\) .*? - /, '')
    .trim();
}
