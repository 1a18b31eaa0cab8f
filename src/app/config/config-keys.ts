import * as z from 'zod';
import { Config } from './config.ts';
import type { TextKind } from './setting-text.ts';

/** One setting as the file, the environment and the flags name it; derived from the schema alone. */
export interface Setting {
  /** Such as `limits.memoryBytes`. */
  readonly path: string;
  readonly environmentName: string;
  readonly kind: TextKind;
  readonly description: string;
  /** SECURITY: a secret value must not be shown in messages or listings. */
  readonly secret: boolean;
}

/** Where a value came from. */
export type Origin = 'default' | `file ${string}` | `environment ${string}` | `flag ${string}`;

const SECRETS: readonly string[] = ['apiKey'];

export const SETTINGS: ReadonlyMap<string, Setting> = new Map(
  [...walk(Config, '')].map((setting) => [setting.path, setting]),
);

/** The groups that hold settings, such as `limits`. */
export const SECTIONS: ReadonlySet<string> = new Set(
  [...SETTINGS.keys()]
    .filter((path) => path.includes('.'))
    .map((path) => path.slice(0, path.lastIndexOf('.'))),
);

/** `limits.memoryBytes` → `HOTCELL_LIMITS_MEMORY_BYTES`. */
export function toEnvironmentName(path: string): string {
  const words = path.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll('.', '_');
  return `HOTCELL_${words.toUpperCase()}`;
}

function* walk(schema: z.ZodObject, prefix: string): Generator<Setting> {
  for (const [key, member] of Object.entries(schema.shape)) {
    const path = prefix + key;
    const inner = unwrap(member);
    if (inner instanceof z.ZodObject) {
      yield* walk(inner, `${path}.`);
    } else {
      yield {
        path,
        environmentName: toEnvironmentName(path),
        kind: toTextKind(inner, path),
        description: member instanceof z.ZodType ? (member.description ?? '') : '',
        secret: SECRETS.includes(path),
      };
    }
  }
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  const isWrapper =
    schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional;
  return isWrapper ? unwrap(schema.unwrap()) : schema;
}

function toTextKind(schema: z.core.$ZodType, path: string): TextKind {
  if (schema instanceof z.ZodBoolean) return 'boolean';
  if (schema instanceof z.ZodArray) return 'list';
  if (schema instanceof z.ZodRecord) return 'json';
  if (!(schema instanceof z.ZodNumber)) return 'text';
  if (path.endsWith('Bytes')) return 'bytes';
  return path.endsWith('Ms') ? 'milliseconds' : 'number';
}

/** Undefined where the path leads nowhere. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const part of path) {
    if (typeof found !== 'object' || found === null) return undefined;
    found = new Map<PropertyKey, unknown>(Object.entries(found)).get(String(part));
  }
  return found;
}
