/** What the model says in one answer. */
type Block =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'tool_use';
      readonly name: string;
      /** `{cwd}` in its strings is the folder that the agent works in. */
      readonly input: Readonly<Record<string, string | boolean>>;
    };

interface Tokens {
  readonly input: number;
  readonly output: number;
}

type Answer =
  | { readonly kind: 'answer'; readonly blocks: readonly Block[]; readonly tokens?: Tokens }
  | { readonly kind: 'error'; readonly status: ErrorStatus; readonly retryAfter: number | undefined }
  /** The connection ends in the middle of a word. */
  | { readonly kind: 'cut'; readonly text: string };

/** One request and what is answered. */
export type Turn = Answer & {
  /** Whoever asks again gets the same again. */
  readonly lasts?: true;
  readonly hold?: Hold;
};

export const ERRORS = {
  400: { type: 'invalid_request_error', message: 'this request makes no sense' },
  401: { type: 'authentication_error', message: 'invalid x-api-key' },
  403: { type: 'permission_error', message: 'this key may not do that' },
  429: { type: 'rate_limit_error', message: 'this request would exceed your rate limit' },
  500: { type: 'api_error', message: 'Internal server error' },
  529: { type: 'overloaded_error', message: 'Overloaded' },
} as const;
export type ErrorStatus = keyof typeof ERRORS;

/** An answer that has begun and does not go on: the test sees that it was asked for, and says when it may. */
export class Hold {
  readonly #asked = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();

  get asked(): Promise<void> {
    return this.#asked.promise;
  }

  release(): void {
    this.#released.resolve();
  }

  /** For the API. */
  arrive(): Promise<void> {
    this.#asked.resolve();
    return this.#released.promise;
  }
}

/** The last words: the agent ends with them. */
export function say(text = 'Done.'): Turn {
  return { kind: 'answer', blocks: [{ type: 'text', text }] };
}

/** A tool is to be used; the agent asks again with what came of it. */
function use(name: string, input: Readonly<Record<string, string | boolean>>): Turn {
  return {
    kind: 'answer',
    blocks: [
      { type: 'text', text: `I use ${name}.` },
      { type: 'tool_use', name, input },
    ],
  };
}

/** Paths are relative to the folder that the agent works in, which is what it wants to hear. */
export const bash = (command: string): Turn => use('Bash', { command, description: 'Run a command' });
export const write = (path: string, content: string): Turn =>
  use('Write', { file_path: `{cwd}/${path}`, content });
export const read = (path: string): Turn => use('Read', { file_path: `{cwd}/${path}` });
/** Only after `read` of the same file. */
export const edit = (path: string, before: string, after: string): Turn =>
  use('Edit', { file_path: `{cwd}/${path}`, old_string: before, new_string: after });

/** `retryAfter` in seconds. */
export function fail(status: ErrorStatus, { retryAfter }: { readonly retryAfter?: number } = {}): Turn {
  return { kind: 'error', status, retryAfter };
}

export function cut(text = 'Half of an ans'): Turn {
  return { kind: 'cut', text };
}

export function lasting(turn: Turn): Turn {
  return { ...turn, lasts: true };
}

export function held(hold: Hold, turn: Turn): Turn {
  return { ...turn, hold };
}

/** Tokens that are known beforehand, for whoever asserts what they cost; otherwise they are counted. */
export function costing(tokens: Tokens, turn: Turn): Turn {
  return turn.kind === 'answer' ? { ...turn, tokens } : turn;
}
