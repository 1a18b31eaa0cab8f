import * as z from 'zod';
import type { Setting } from '../../src/app/config/config-keys.ts';
import { code, plain } from './markdown.ts';

export const JsonSchema = z.looseObject({
  description: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  enum: z.array(z.unknown()).optional(),
  minimum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  maximum: z.number().optional(),
  default: z.unknown().optional(),
  required: z.array(z.string()).optional(),
  get properties() {
    return z.record(z.string(), JsonSchema).optional();
  },
  get items() {
    return JsonSchema.optional();
  },
  get anyOf() {
    return z.array(JsonSchema).optional();
  },
});
export type JsonSchema = z.infer<typeof JsonSchema>;

const UNITS: Readonly<Partial<Record<Setting['kind'], readonly (readonly [number, string])[]>>> = {
  bytes: [
    [1024 ** 3, 'g'],
    [1024 ** 2, 'm'],
    [1024, 'k'],
  ],
  milliseconds: [
    [60_000, 'min'],
    [1000, 's'],
    [1, 'ms'],
  ],
};

/** A value as one would write it in the environment. */
export function settingText(kind: Setting['kind'], value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value !== 'number') return typeof value === 'string' ? value : JSON.stringify(value);
  const unit = (UNITS[kind] ?? []).find(([size]) => value >= size && value % size === 0);
  return unit === undefined ? String(value) : `${value / unit[0]}${unit[1]}`;
}

export function allowedText(kind: Setting['kind'], schema: JsonSchema | undefined): string {
  const words = (schema?.enum ?? schema?.items?.enum)?.map((word) => code(String(word)));
  if (words !== undefined) return `${kind === 'list' ? 'any of' : 'one of'} ${words.join(', ')}`;
  const { minimum, exclusiveMinimum, maximum } = schema ?? {};
  const bounds = [
    minimum === undefined || minimum === 0 || minimum === Number.MIN_SAFE_INTEGER
      ? undefined
      : `at least ${settingText(kind, minimum)}`,
    exclusiveMinimum === undefined ? undefined : `more than ${exclusiveMinimum}`,
    maximum === undefined || maximum === Number.MAX_SAFE_INTEGER
      ? undefined
      : `at most ${settingText(kind, maximum)}`,
  ];
  return bounds.filter((bound) => bound !== undefined).join(', ');
}

function typeText(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(typeText).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.type === 'array')
    return `array of ${schema.items === undefined ? 'any' : typeText(schema.items)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

/** A row for every field of a schema, and for those below it: name, type, meaning. */
export function rowsOf(given: unknown, prefix: string): string[][] {
  const schema = JsonSchema.parse(given);
  const object = schema.properties === undefined ? schema.anyOf?.[0] : schema;
  return Object.entries(object?.properties ?? {}).flatMap(([name, field]) => {
    const must = object?.required?.includes(name) === true ? '' : ' (optional)';
    const bounds = [allowedText('number', { ...field, enum: undefined, items: undefined })];
    if (field.default !== undefined) bounds.push(`default ${code(JSON.stringify(field.default))}`);
    const notes = [plain(field.description ?? ''), ...bounds].filter((text) => text !== '');
    const below = field.type === 'array' ? field.items : field;
    return [
      [code(prefix + name) + must, plain(typeText(field)), notes.join('; ')],
      ...rowsOf(below ?? {}, `${prefix}${name}${field.type === 'array' ? '[]' : ''}.`),
    ];
  });
}
