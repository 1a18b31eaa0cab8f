import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { LineCounter, parseDocument } from 'yaml';
import { HotcellError, messageOf } from '../../core/errors.ts';

export interface ConfigFile {
  readonly path: string;
  /** The top-level mapping; empty when the file is empty. */
  readonly content: Readonly<Record<string, unknown>>;
}

const SYSTEM_FILE = '/etc/hotcell/hotcell.yaml';

/** The named file, which must exist, or the first of the usual places that has one. */
export function readConfigFile(cwd: string, named: string | undefined): ConfigFile | undefined {
  if (named !== undefined) {
    const path = resolve(cwd, named);
    const text = readIfThere(path);
    if (text === undefined) throw invalid(`file ${path}: does not exist`);
    return parse(path, text);
  }
  for (const path of [resolve(cwd, 'hotcell.yaml'), SYSTEM_FILE]) {
    const text = readIfThere(path);
    if (text !== undefined) return parse(path, text);
  }
  return undefined;
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw invalid(`file ${path}: cannot be read (${messageOf(error)})`, error);
  }
}

function parse(path: string, text: string): ConfigFile {
  const document = parseDocument(text, { lineCounter: new LineCounter(), prettyErrors: true });
  if (document.errors.length > 0) {
    // The first line has the place; the rest of a YAML message is an excerpt, which could hold a key.
    const problems = document.errors.map((error) => `file ${path}: ${error.message.split('\n')[0] ?? ''}`);
    throw invalid(problems.join('\n').replaceAll(/:$/gm, ''));
  }
  const content = toValue(path, () => document.toJS() as unknown);
  if (content === null) return { path, content: {} };
  if (!isMapping(content)) throw invalid(`file ${path}: must be a mapping of settings`);
  return { path, content };
}

/** Making values may fail too: aliases that explode. */
function toValue(path: string, make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    throw invalid(`file ${path}: ${messageOf(error)}`, error);
  }
}

export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string, cause?: unknown): HotcellError {
  return new HotcellError('CONFIG_INVALID', message, { cause });
}
