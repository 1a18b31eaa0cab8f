import * as z from 'zod';
import { ErrorReply } from '../wire/execute.ts';
import { toBinaryText } from './base64.ts';
import { delayBefore, pause, type RetryPolicy } from './retry-policy.ts';
import { badReply, cancelled, networkError, reasonOf, RunnerError } from './runner-error.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the address of the server, its parts already encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
  /** Send it once, whatever happens. */
  readonly once?: boolean;
}

/** Somebody waits because of this. */
export interface RetryNotice {
  readonly error: RunnerError;
  readonly delayMs: number;
}

export interface TransportOptions {
  /** Such as `http://127.0.0.1:8000`. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly retries: RetryPolicy;
  /** Called before every wait for another attempt. */
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined;
}

const NEVER = new AbortController().signal;
/** Of an answer that says that something is wrong; ours are short. */
const LONGEST_PROBLEM = 64 * 1024;
/** Whoever should wait longer than this decides for himself. */
const LONGEST_RETRY_AFTER_S = 30;
const GATEWAY_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** What Node says when no connection was made; then nothing can have begun. */
const UNREACHED: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'ENETUNREACH']);

/** Requests to one server: key, errors as RunnerError, and again what may be sent again. */
export class HttpTransport {
  readonly retries: RetryPolicy;
  readonly #base: string;
  readonly #authorization: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;
  readonly #onRetry: (notice: RetryNotice) => void;

  constructor({ baseUrl, apiKey, fetch: given, retries, onRetry }: TransportOptions) {
    this.#base = baseUrl.replace(/\/+$/, '');
    // As bytes, because headers carry one character per byte.
    const key = apiKey === undefined ? undefined : toBinaryText(new TextEncoder().encode(apiKey));
    this.#authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
    // Browsers want their fetch called without an owner.
    this.#fetch = given ?? ((input, init) => fetch(input, init));
    this.retries = retries;
    this.#onRetry = onRetry ?? (() => undefined);
  }

  /** The address of a path; `ws` for WebSockets. */
  url({ path, query = {} }: Pick<HttpRequest, 'path' | 'query'>, scheme: 'http' | 'ws' = 'http'): string {
    const words = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
    );
    const base = scheme === 'ws' ? this.#base.replace(/^http/, 'ws') : this.#base;
    return `${base}${path}${words.length === 0 ? '' : `?${words.join('&')}`}`;
  }

  /** The reply, checked against its schema. */
  json<Schema extends z.ZodType>(request: HttpRequest, schema: Schema): Promise<z.output<Schema>> {
    return this.send(request, async (response) => {
      const value: unknown = parseJson(await response.text());
      const parsed = schema.safeParse(value);
      if (parsed.success) return parsed.data;
      throw badReply(z.prettifyError(parsed.error).split('\n')[0] ?? 'its form', parsed.error);
    });
  }

  /** Sends it until it is answered; `use` takes what it needs from the answer. Throws RunnerError. */
  async send<Value>(request: HttpRequest, use: (response: Response) => Promise<Value>): Promise<Value> {
    const { signal = NEVER } = request;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#sendOnce(request, use);
      } catch (error) {
        if (signal.aborted) throw cancelled(signal);
        const known = error instanceof RunnerError ? error : this.#toNetworkError(request, error);
        if (request.once === true || attempt >= this.retries.requests || !maySendAgain(request, known)) {
          throw known;
        }
        const delayMs =
          known.retryAfterSeconds === undefined
            ? delayBefore(attempt, this.retries)
            : known.retryAfterSeconds * 1000;
        this.tell({ error: known, delayMs });
        await pause(delayMs, signal);
        if (signal.aborted) throw cancelled(signal);
      }
    }
  }

  tell(notice: RetryNotice): void {
    this.#onRetry(notice);
  }

  async #sendOnce<Value>(request: HttpRequest, use: (response: Response) => Promise<Value>): Promise<Value> {
    const { method, body, headers, signal = null } = request;
    const response = await this.#fetch(this.url(request), {
      method,
      signal,
      headers: {
        ...this.#authorization,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // SECURITY: the key must not follow a redirect to somewhere else.
      redirect: 'error',
    });
    if (!response.ok) throw await toProblem(response);
    return use(response);
  }

  #toNetworkError({ method, path }: HttpRequest, error: unknown): RunnerError {
    const unreached = error instanceof Error && error.cause instanceof Error && codeOf(error.cause);
    if (method === 'GET' || UNREACHED.has(unreached)) {
      return networkError(`cannot reach ${this.#base}: ${reasonOf(error)}`, error);
    }
    // SECURITY: the id of a session is a secret, and messages end up in logs.
    const route = path.replace(/^(\/v1\/sessions)\/[^/]+/, '$1/…');
    return networkError(
      `the connection broke, and whether ${method} ${route} was carried out is not known: ${reasonOf(error)}`,
      error,
    );
  }
}

/** Reading can be repeated; everything else only when the server says that nothing has begun and when to come again. */
function maySendAgain({ method }: HttpRequest, { code, status, retryAfterSeconds }: RunnerError): boolean {
  if (retryAfterSeconds !== undefined && (status === 429 || status === 503)) {
    return retryAfterSeconds <= LONGEST_RETRY_AFTER_S;
  }
  return method === 'GET' && (code === 'NETWORK' || GATEWAY_STATUSES.has(status));
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined;
}

async function toProblem(response: Response): Promise<RunnerError> {
  const { status } = response;
  const retryAfterSeconds = toSeconds(response.headers.get('retry-after'));
  const parsed = ErrorReply.safeParse(parseJson(await readStart(response, LONGEST_PROBLEM), {}));
  if (parsed.success) {
    const { code, detail, hint, field } = parsed.data;
    return new RunnerError(code, detail, { status, hint, field, retryAfterSeconds });
  }
  // A proxy in between answers in its own words.
  return new RunnerError('BAD_REPLY', `the answer was HTTP ${status} without a reason`, {
    status,
    hint: 'Check that the address is that of a Hotcell server, and what stands in between.',
    retryAfterSeconds,
  });
}

function toSeconds(header: string | null): number | undefined {
  if (header === null) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header);
  const ms = Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.ceil(ms / 1000));
}

function parseJson(text: string, otherwise?: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (otherwise !== undefined) return otherwise;
    throw badReply('it is no JSON', error);
  }
}

/** As much of the body as is of interest. */
async function readStart({ body }: Response, limit: number): Promise<string> {
  if (body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  const reader = body.getReader();
  try {
    while (text.length < limit) {
      const { done, value } = await reader.read();
      if (done) break;
      text += decoder.decode(value, { stream: true });
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  return text;
}
