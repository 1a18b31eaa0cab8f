import { isAtLeast } from './versions.ts';

/** As Foundation's JSONEncoder writes it: sorted keys, and up to 1.3 every slash with a backslash before it. */
export function toCompactJson(value: unknown, version: string): string {
  return escapeSlashes(JSON.stringify(sortKeys(value)), version);
}

/** `"key" : value`, two spaces, and an empty line in what is empty. */
export function toPrettyJson(value: unknown, version: string): string {
  return escapeSlashes(write(sortKeys(value), ''), version);
}

function write(value: unknown, indent: string): string {
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const items = value.map((item) => inner + write(item, inner));
    return `[\n${items.join(',\n')}\n${indent}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(
      ([key, item]) => `${inner}${JSON.stringify(key)} : ${write(item, inner)}`,
    );
    return `{\n${entries.join(',\n')}\n${indent}}`;
  }
  return JSON.stringify(value);
}

function escapeSlashes(text: string, version: string): string {
  return isAtLeast(version, '1.4.1') ? text : text.replaceAll('/', String.raw`\/`);
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    entries.toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([key, item]) => [key, sortKeys(item)]),
  );
}
