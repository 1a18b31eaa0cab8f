import type { FastifyRequest } from 'fastify';
import * as z from 'zod';
import { HotcellError } from '../core/errors.ts';
import { makeRequestParser } from './request-problems.ts';

/** Reads the query of a request as strictly as a body: what is unknown, doubled or malformed is refused. */
export function makeQueryParser<Schema extends z.ZodType>(
  schema: Schema,
): (request: FastifyRequest) => z.output<Schema> {
  const parse = makeRequestParser(schema);
  return ({ query }) => {
    // SECURITY: schema libraries skip this key without a word.
    if (typeof query === 'object' && query !== null && Object.hasOwn(query, '__proto__')) {
      throw new HotcellError('INVALID_REQUEST', 'the query must not have __proto__', { field: '__proto__' });
    }
    return parse(query);
  };
}

/** A whole number as a query or a header writes it. */
export function numberText({ min = 0, max }: { min?: number; max: number }) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));
}
