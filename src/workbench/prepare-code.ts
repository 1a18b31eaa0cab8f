import { HotcellError } from '../core/errors.ts';
import type { Language } from '../core/language.ts';
import type { PackageSpec, Packages, PreparedPackages } from '../packages/api.ts';
import { abortable } from '../core/abortable.ts';
import type { CodeRequest, Owner, Snippets } from './api.ts';
import type { CodeFiles } from './code-folder.ts';
import type { ImportReader } from './options.ts';
import {
  SNIPPETS,
  findImportedSnippets,
  findUsedSnippets,
  importUsed,
  isSnippetName,
} from './snippet-text.ts';

export interface PrepareParts {
  readonly owner: Owner;
  readonly language: Language;
  readonly snippets: Snippets;
  readonly imports: ImportReader;
  packages(): Promise<Packages>;
  readonly signal: AbortSignal;
  onProgress(text: string): void;
}

export interface PreparedCode extends Pick<CodeFiles, 'main' | 'snippets'> {
  /** Undefined when the code needs none. */
  readonly packages: PreparedPackages | undefined;
  /** What the main file imports before its first line, in this order. */
  readonly eager: readonly string[];
  readonly warnings: readonly string[];
}

/** Endings of code whose imports can be read, and for which npm has packages. */
const WITH_PACKAGES: ReadonlySet<string> = new Set(['ts', 'tsx', 'mts', 'cts', 'js', 'jsx', 'mjs', 'cjs']);
const MOST_SNIPPETS = 100;

/** Everything that a run needs beside its cell. Throws what keeps the code from running at all. */
export async function prepareCode(request: CodeRequest, parts: PrepareParts): Promise<PreparedCode> {
  const { language } = parts;
  const name = `main.${language.extension}`;
  if (!WITH_PACKAGES.has(language.extension)) {
    requireNone(request.packages, 'packages', request.language);
    requireNone(request.snippets, 'snippets', request.language);
    const main = { name, code: request.code };
    return { main, snippets: new Map(), packages: undefined, eager: [], warnings: [] };
  }
  // Only Bun is told where snippets are.
  const hasSnippets = language.command[0] === 'bun';
  if (!hasSnippets) requireNone(request.snippets, 'snippets', request.language);
  const raw = hasSnippets ? await collectSnippets(request, parts) : new Map<string, string>();
  const texts = new Map([[name, importUsed(request.code, raw)]]);
  for (const [snippet, code] of raw) texts.set(toSnippetFile(snippet), importUsed(code, raw));

  const specs: PackageSpec[] = [];
  const warnings: string[] = [];
  const scanned = new Map<string, string>();
  let eager: readonly string[] = [];
  for (const [fileName, text] of texts) {
    const found = await scan(fileName, text, parts);
    if (hasSnippets) requireFound(text, found.packages, raw);
    specs.push(...found.packages.filter((spec) => !(hasSnippets && spec.name === SNIPPETS)));
    warnings.push(
      ...found.warnings.map((warning) => (fileName === name ? warning : `${fileName}: ${warning}`)),
    );
    scanned.set(fileName, found.code);
    if (fileName === name) eager = found.eager;
  }
  const wanted = parts.imports.merge(request.packages, specs);
  const packages = wanted.length === 0 ? undefined : await install(wanted, parts);
  const snippets = new Map([...raw.keys()].map((key) => [key, scanned.get(toSnippetFile(key)) ?? '']));
  return { main: { name, code: scanned.get(name) ?? request.code }, snippets, packages, eager, warnings };
}

function toSnippetFile(name: string): string {
  return `${SNIPPETS}/${name}.ts`;
}

function requireNone(given: readonly string[], field: string, language: string): void {
  if (given.length === 0) return;
  throw new HotcellError('INVALID_REQUEST', `${field}: there are none for ${language}`, {
    field,
    hint: 'Leave them out, or write the code in typescript.',
  });
}

/** Those that the code asks for in any way, and those that these ask for. */
async function collectSnippets(request: CodeRequest, parts: PrepareParts): Promise<Map<string, string>> {
  const collected = new Map<string, string>();
  const insisted = [...request.snippets, ...findUsedSnippets(request.code)];
  const queue = [...insisted, ...findImportedSnippets(request.code)];
  for (const name of queue) {
    if (collected.has(name)) continue;
    const code = await findSnippet(name, parts, insisted.includes(name));
    if (code === undefined) continue;
    collected.set(name, code);
    if (collected.size > MOST_SNIPPETS) {
      throw new HotcellError('INVALID_REQUEST', `the code uses more than ${MOST_SNIPPETS} snippets`);
    }
    insisted.push(...findUsedSnippets(code));
    queue.push(...findUsedSnippets(code), ...findImportedSnippets(code));
  }
  return collected;
}

/** A name that only looks like that of a snippet is none. */
async function findSnippet(name: string, parts: PrepareParts, insists: boolean): Promise<string | undefined> {
  try {
    return (await parts.snippets.get(parts.owner, name)).code;
  } catch (error) {
    const isUnknown = error instanceof HotcellError && error.code === 'SNIPPET_UNKNOWN';
    if (insists || !isUnknown) throw error;
    return undefined;
  }
}

/** Bun would only say that it cannot find a module. */
function requireFound(
  text: string,
  packages: readonly PackageSpec[],
  known: ReadonlyMap<string, string>,
): void {
  if (!packages.some(({ name }) => name === SNIPPETS)) return;
  const missing = findImportedSnippets(text).find((name) => isSnippetName(name) && !known.has(name));
  if (missing === undefined) return;
  throw new HotcellError(
    'SNIPPET_UNKNOWN',
    `the code imports snippets/${missing}, and there is no such snippet`,
  );
}

async function scan(fileName: string, text: string, { imports, signal }: PrepareParts) {
  const found = await abortable(imports.scan(text, { fileName }), signal);
  if (found.ok) return found;
  const { kind, message, line, column, frame } = found.problem;
  const what = kind === 'syntax' ? 'syntax error' : 'import';
  const place = frame === '' ? '' : ` (${fileName}:${line}:${column})\n${frame}`;
  throw new HotcellError('INVALID_REQUEST', `${what}: ${message}${place}`, {
    field: 'code',
    hint: 'Nothing was installed and nothing has run. Correct the code.',
  });
}

async function install(specs: readonly PackageSpec[], parts: PrepareParts): Promise<PreparedPackages> {
  const { signal } = parts;
  const packages = await abortable(parts.packages(), signal);
  const options = { signal, onProgress: (text: string) => parts.onProgress(text) };
  return abortable(packages.prepare(specs, options), signal);
}
