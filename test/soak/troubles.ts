import type { FaultKind } from './plan.ts';

/** An answer that is an error, or the end of a command that is one. */
export class Refusal extends Error {
  readonly code: string;

  constructor(what: string, status: number, code: string, detail = '') {
    super(`${what}: ${status} ${code} ${detail}`.trim());
    this.name = 'Refusal';
    this.code = code;
  }
}

const NO_CELL = ['CELL_LOST', 'CELL_START_FAILED', 'DRIVER_UNAVAILABLE'];
const OVER = ['CELL_LOST', 'cell_lost', 'start_failed', 'SESSION_ENDED', 'SESSION_UNREACHABLE'];
const FULL = ['DISK_FULL', 'SESSIONS_UNAVAILABLE', ...NO_CELL, ...OVER];

/** A terminal that is not granted, or whose output finds no room, has no words at all. */
export const UNSTORED = /output could not be stored|the terminal was closed before it (?:opened|showed)/;

/** Failed runs of AI clients and fleets have no code, but they say who is missing. */
const NO_ENGINE = /the engine at \S+ cannot /;

interface Excuse {
  /** The connection may break. */
  readonly breaks?: boolean;
  readonly codes?: readonly string[];
  /** What is said of it where there is no code. */
  readonly words?: RegExp;
}

/** What whoever is at work when it happens may be told; everything else is wrong. */
const EXCUSES: Readonly<Record<FaultKind, Excuse>> = {
  'kill-server': { breaks: true },
  'stop-server': { breaks: true, codes: ['SHUTTING_DOWN'], words: /SHUTTING_DOWN/ },
  'freeze-server': {},
  'drop-clients': { breaks: true },
  'full-disk': { codes: FULL, words: UNSTORED },
  'kill-fleet': {},
  'kill-init': { codes: NO_CELL },
  'kill-runtime': { codes: NO_CELL },
  'kill-keeper': { codes: [...NO_CELL, 'start_failed'] },
  'kill-session': { codes: OVER, breaks: true },
  'freeze-cell': {},
  'kill-engine': { codes: [...NO_CELL, ...OVER], breaks: true, words: NO_ENGINE },
  'freeze-engine': { codes: [...NO_CELL, ...OVER], breaks: true, words: NO_ENGINE },
  'kill-container': { codes: [...NO_CELL, ...OVER], breaks: true },
};

const BROKEN =
  /fetch failed|terminated|ECONNREFUSED|ECONNRESET|EPIPE|socket hang up|other side closed|aborted|closed|disposed/i;

/** Which faults there are and were, so that an act can be judged by those that it met. */
export class Troubles {
  readonly #all: { readonly kind: FaultKind; end: number }[] = [];

  /** Lasts until the returned function is called. */
  begin(kind: FaultKind): () => void {
    const trouble = { kind, end: Number.POSITIVE_INFINITY };
    this.#all.push(trouble);
    return () => {
      trouble.end = performance.now();
    };
  }

  /** Those that were not over at this moment. */
  since(moment: number): FaultKind[] {
    return this.#all.filter(({ end }) => end >= moment).map(({ kind }) => kind);
  }

  /** Whoever begins from now on has no excuse. */
  clear(): void {
    this.#all.length = 0;
  }
}

/** Is it what one of these faults may do to whoever is at work? */
export function isExcused(error: unknown, kinds: readonly FaultKind[]): boolean {
  return kinds.map((kind) => EXCUSES[kind]).some((excuse) => excuses(excuse, error));
}

function excuses({ breaks = false, codes = [], words }: Excuse, error: unknown): boolean {
  if (words?.test(wordsOf(error)) === true) return true;
  if (error instanceof Refusal) return codes.includes(error.code);
  return breaks && BROKEN.test(wordsOf(error));
}

/** The words of an error and of its causes. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? '' : `: ${wordsOf(error.cause)}`;
  const code = 'code' in error ? ` ${String(error.code)}` : '';
  return `${error.message}${code}${cause}`;
}
