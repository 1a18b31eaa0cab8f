import type * as z from 'zod';

/** Stands in the place of a row that cannot be read. The row itself is kept: a later version may know what to do with it. */
export interface Unreadable {
  readonly problem: string;
}

export function readRow<Schema extends z.ZodType, Left extends Unreadable>(
  schema: Schema,
  row: unknown,
  toUnreadable: (problem: string) => Left,
): z.output<Schema> | Left {
  const read = schema.safeParse(row);
  if (read.success) return read.data;
  const problems = read.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  return toUnreadable(problems.join('; '));
}
