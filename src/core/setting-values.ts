import * as z from 'zod';

/** Timers of Node cannot wait longer. */
export const LONGEST_TIME_MS = 2 ** 31 - 1;

interface Bounds {
  readonly min: number;
  readonly max?: number;
}

/** A whole number, such as a count or bytes: what it is unless set, and its bounds. */
export function whole(usual: number, { min, max }: Bounds): z.ZodDefault<z.ZodInt> {
  const atLeast = z.int().min(min);
  return (max === undefined ? atLeast : atLeast.max(max)).default(usual);
}

/** Milliseconds. */
export function time(usual: number, { min = 10 }: Partial<Bounds> = {}): z.ZodDefault<z.ZodInt> {
  return whole(usual, { min, max: LONGEST_TIME_MS });
}

export const minutes = (count: number): number => count * 60_000;

/** One of a few words: which it is unless set, and all of them. */
export function choice<const Word extends string>(usual: NoInfer<Word>, words: readonly Word[]) {
  return z.enum(words).default(usual);
}

/** Settings that belong together. Each of them has its default unless set. */
export function group<Shape extends z.core.$ZodLooseShape>(
  meaning: string,
  shape: Shape,
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>>;
export function group(meaning: string, shape: z.core.$ZodLooseShape): z.ZodType {
  return z.strictObject(shape).prefault({}).describe(meaning);
}
