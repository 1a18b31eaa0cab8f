const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface CutText {
  readonly text: string;
  /** Bytes of the middle that are not in it. */
  readonly cutBytes: number;
}

/** Keeps the head and the tail of a long text, in whole characters. `mark` says what stands where the middle was. */
export function cutMiddle(text: string, keepBytes: number, mark: (cutBytes: number) => string): CutText {
  const bytes = encoder.encode(text);
  if (bytes.length <= keepBytes) return { text, cutBytes: 0 };
  const half = Math.floor(keepBytes / 2);
  const headEnd = startOfCharacter(bytes, half);
  const tailStart = startOfCharacter(bytes, bytes.length - half);
  const cutBytes = tailStart - headEnd;
  return {
    text: `${decoder.decode(bytes.subarray(0, headEnd))}${mark(cutBytes)}${decoder.decode(bytes.subarray(tailStart))}`,
    cutBytes,
  };
}

/** The place at or before `at` where a character of UTF-8 begins. */
function startOfCharacter(bytes: Uint8Array, at: number): number {
  let place = at;
  while (place > 0 && ((bytes[place] ?? 0) & 0xc0) === 0x80) place -= 1;
  return place;
}
