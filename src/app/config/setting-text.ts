import { messageOf } from '../../core/errors.ts';

/** How a value is written where only text is possible: in the environment and in flags. */
export type TextKind = 'text' | 'number' | 'bytes' | 'milliseconds' | 'boolean' | 'list' | 'json';

export type ParsedText =
  { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

const UNITS = {
  number: { factors: new Map<string, number>([['', 1]]), example: 'a number' },
  bytes: {
    factors: new Map<string, number>([
      ['', 1],
      ['k', 1024],
      ['m', 1024 ** 2],
      ['g', 1024 ** 3],
    ]),
    example: 'a number of bytes such as 268435456 or 256m (k, m, g)',
  },
  milliseconds: {
    factors: new Map<string, number>([
      ['', 1],
      ['ms', 1],
      ['s', 1000],
      ['min', 60_000],
    ]),
    example: 'a number of milliseconds, or a time such as 500ms, 5s or 30min',
  },
} as const;

const PARSERS: Readonly<Record<TextKind, (text: string) => ParsedText>> = {
  text: (text) => (text === '' ? refuse('must not be empty; unset it instead') : { ok: true, value: text }),
  number: (text) => parseQuantity('number', text),
  bytes: (text) => parseQuantity('bytes', text),
  milliseconds: (text) => parseQuantity('milliseconds', text),
  boolean: parseBoolean,
  list: parseList,
  json: parseJson,
};

/** Strict: text that is only partly a value (`12abc`) is no value. */
export function parseSettingText(kind: TextKind, text: string): ParsedText {
  return PARSERS[kind](text.trim());
}

function parseList(text: string): ParsedText {
  const parts = text.split(',').map((part) => part.trim());
  return { ok: true, value: parts.filter((part) => part !== '') };
}

function parseQuantity(kind: keyof typeof UNITS, text: string): ParsedText {
  const { factors, example } = UNITS[kind];
  const match = /^(-?\d+(?:\.\d+)?) ?([a-z]*)$/i.exec(text);
  const factor = factors.get(match?.[2]?.toLowerCase() ?? '');
  if (match?.[1] === undefined || factor === undefined) return refuse(`must be ${example}`);
  return { ok: true, value: Number(match[1]) * factor };
}

function parseBoolean(text: string): ParsedText {
  if (text === 'true' || text === '1') return { ok: true, value: true };
  if (text === 'false' || text === '0') return { ok: true, value: false };
  return refuse('must be true, false, 1 or 0');
}

function parseJson(text: string): ParsedText {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return refuse(`must be JSON (${messageOf(error)})`);
  }
}

function refuse(problem: string): ParsedText {
  return { ok: false, problem };
}
