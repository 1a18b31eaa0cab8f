const LONGEST_PATH = 4096;
const LONGEST_PART = 255;
const DEEPEST = 128;

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The parts of a path in an archive, from its top; empty for the top itself. Undefined for a path that is not plainly below
 * it. SECURITY: the archive comes out of a cell, and whoever wrote it wants to write elsewhere.
 */
export function toParts(path: Uint8Array): readonly string[] | undefined {
  const whole = toText(path);
  if (whole === undefined || whole.length > LONGEST_PATH || whole.startsWith('/')) return undefined;
  const tidy = whole.replace(/^(\.\/)+/, '').replace(/\/$/, '');
  if (tidy === '' || tidy === '.') return [];
  const parts = tidy.split('/');
  return parts.length <= DEEPEST && parts.every(isName) ? parts : undefined;
}

/**
 * Whether a link at `parts` may lead to `target`: up as far as the top, and then only down. SECURITY: a way up after a way
 * down could go through another link and come out elsewhere; links that keep to this cannot lead out together either.
 */
export function staysBelow(parts: readonly string[], target: Uint8Array): boolean {
  const text = toText(target);
  if (text === undefined || text === '' || text.length > LONGEST_PATH || text.startsWith('/')) return false;
  const steps = text
    .replace(/\/$/, '')
    .split('/')
    .filter((step) => step !== '.');
  const ups = steps.findIndex((step) => step !== '..');
  const down = ups === -1 ? [] : steps.slice(ups);
  return (ups === -1 ? steps.length : ups) < parts.length && down.every(isName);
}

function isName(part: string): boolean {
  const isPlain = part !== '' && part !== '.' && part !== '..' && !part.includes('\0');
  return isPlain && Buffer.byteLength(part) <= LONGEST_PART;
}

function toText(bytes: Uint8Array): string | undefined {
  try {
    const text = strictUtf8.decode(bytes);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}
