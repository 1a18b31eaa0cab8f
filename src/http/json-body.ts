import { HotcellError, messageOf } from '../core/errors.ts';

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });
/** `__proto__` as a JSON string may write it, any letter escaped. */
const MAY_NAME_THE_PROTOTYPE = /__proto__|\\u00/i;

/** Reads a request body as one JSON object; everything else is an INVALID_JSON. */
export function parseJsonObject(body: Uint8Array): Record<string, unknown> {
  if (body.length === 0) throw new HotcellError('INVALID_JSON', 'the body is empty');
  const text = decode(body);
  const value = parse(text);
  if (!isObject(value)) {
    throw new HotcellError('INVALID_JSON', `the body must be a JSON object, got ${typeWord(value)}`);
  }
  // SECURITY: schema libraries skip this key without a word, so a request would run without what it asked for.
  if (MAY_NAME_THE_PROTOTYPE.test(text) && hasPrototypeKey(value)) {
    throw new HotcellError('INVALID_JSON', 'the key "__proto__" is not allowed');
  }
  return value;
}

/** The JSON name of a value's type, as a person would say it. */
export function typeWord(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value;
}

function decode(body: Uint8Array): string {
  try {
    return strictUtf8.decode(body);
  } catch (error) {
    throw new HotcellError('INVALID_JSON', 'the body is not valid UTF-8', { cause: error });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HotcellError('INVALID_JSON', `the body is not JSON: ${messageOf(error)}`, { cause: error });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A loop, not a recursion: the nesting is chosen by the client and must not exhaust our stack. */
function hasPrototypeKey(root: object): boolean {
  const left: object[] = [root];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (Object.hasOwn(node, '__proto__')) return true;
    for (const value of Object.values(node) as unknown[]) {
      if (typeof value === 'object' && value !== null) left.push(value);
    }
  }
  return false;
}
