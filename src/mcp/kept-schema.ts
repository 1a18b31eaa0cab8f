import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import type * as z from 'zod';

const kept = new WeakMap<z.ZodObject, StandardSchemaWithJSON<unknown, Record<string, unknown>>>();

/** The same schema, but its JSON form is made once and not for every server object, of which each request may need one. */
export function keepJson(schema: z.ZodObject): StandardSchemaWithJSON<unknown, Record<string, unknown>> {
  const known = kept.get(schema);
  if (known !== undefined) return known;
  const standard = schema['~standard'];
  const made = {
    '~standard': {
      ...standard,
      jsonSchema: { input: once(standard.jsonSchema.input), output: once(standard.jsonSchema.output) },
    },
  };
  kept.set(schema, made);
  return made;
}

type Convert = StandardSchemaWithJSON['~standard']['jsonSchema']['input'];

function once(convert: Convert): Convert {
  const results = new Map<string, Record<string, unknown>>();
  return (options) => {
    const key = JSON.stringify(options);
    const result = results.get(key) ?? convert(options);
    results.set(key, result);
    return structuredClone(result);
  };
}
