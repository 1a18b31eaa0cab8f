/** How the guest describes one file: a letter for the kind, then what the kernel says of it. */
export const RECORD_BYTES = 47;

const KINDS = { f: 'file', d: 'folder', l: 'link', o: 'other', '-': 'missing', x: 'barred' } as const;
export type FileKind = (typeof KINDS)[keyof typeof KINDS];

const MODE_AT = 1;
const SIZE_AT = 11;
const CHANGED_AT = 19;
const CHANGED_NS_AT = 27;
const MODIFIED_AT = 35;

/** One file at one moment. `barred`: something on the way to it is no folder, or may not be entered. */
export interface FileState {
  readonly kind: FileKind;
  readonly mode: number;
  readonly size: number;
  /** When it was last changed in any way, which no program can set back. */
  readonly changedMs: number;
  /** The record itself, a character for each byte: mode, inode, size and times. Whatever happens to a file changes it. */
  readonly stamp: string;
}

/** Undefined for what no honest guest says. */
export function toFileState(records: Buffer, at = 0): FileState | undefined {
  if (records.length < at + RECORD_BYTES) return undefined;
  const kind = toKind(records[at] ?? 0);
  const size = readNumber(records, at + SIZE_AT);
  if (kind === undefined || size > Number.MAX_SAFE_INTEGER) return undefined;
  return {
    kind,
    mode: records.readUInt16LE(at + MODE_AT) & 0o7777,
    size,
    changedMs: readNumber(records, at + CHANGED_AT) * 1000 + records.readUInt32LE(at + CHANGED_NS_AT) / 1e6,
    stamp: records.toString('latin1', at, at + RECORD_BYTES),
  };
}

function toKind(byte: number): FileKind | undefined {
  const letter = String.fromCharCode(byte);
  return isLetter(letter) ? KINDS[letter] : undefined;
}

function isLetter(text: string): text is keyof typeof KINDS {
  return Object.hasOwn(KINDS, text);
}

/** Eight bytes, lowest first; beyond 2^53 it is only roughly right. */
function readNumber(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

/** When its content was last changed, or what a program says of that. */
export function toModifiedSeconds({ stamp }: FileState): number {
  return readNumber(Buffer.from(stamp, 'latin1'), MODIFIED_AT);
}

/** The guest's clock, which is the one that file times come from. */
export function toClockMs(payload: Buffer): number | undefined {
  return payload.length === 16 ? readNumber(payload, 0) * 1000 + payload.readUInt32LE(8) / 1e6 : undefined;
}

/**
 * File times move in steps of some milliseconds. A file that was changed as lately as this may be changed once more
 * without any trace in its stamp.
 */
const STEP_MS = 100;

export function isYoung(state: FileState, clockMs: number): boolean {
  return state.changedMs > clockMs - STEP_MS;
}
