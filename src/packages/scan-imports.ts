import { parseSync, type ParseResult } from 'oxc-parser';
import { HotcellError } from '../core/errors.ts';
import { toCodePosition, type CodePosition } from './code-frame.ts';
import { findImports, type FoundImport } from './find-imports.ts';
import { readSpecifier } from './import-specifier.ts';
import { SpecTable } from './package-spec.ts';
import type { ImportScan, ScanProblem } from './scan-messages.ts';

export interface ScanOptions {
  /** Its ending says what is read: `.ts`, `.tsx`, `.js`, `.jsx`, `.mts`, `.cts`, `.mjs`, `.cjs`. */
  readonly fileName: string;
}

/** SECURITY: whoever sends more wants us to be busy, not to run it. */
export const LONGEST_CODE = 4 * 1024 * 1024;
const MOST_WARNINGS = 10;
const MOST_EAGER = 32;
/** What is imported by it is code of the caller, and not of the runtime. */
const LOADS_CODE = /^(?:[./#]|(?:file|data):|snippets\/)/;
const LONGEST_MESSAGE = 300;

/**
 * Which packages the code imports. SECURITY: the parser is native, and ends the process on code that is nested deeply
 * enough; for code of others use `ImportScanner`, which has it in a process of its own.
 */
export function scanImports(code: string, { fileName }: ScanOptions): ImportScan {
  if (code.length > LONGEST_CODE)
    return failed('syntax', `the code has more than ${LONGEST_CODE} characters`);
  const parsed = parseSync(fileName, code);
  const [error] = parsed.errors;
  if (error !== undefined) {
    const { message, labels } = error;
    return failed('syntax', message.slice(0, LONGEST_MESSAGE), toCodePosition(code, labels[0]?.start ?? 0));
  }
  const { imports, unreadable } = findImports(parsed);
  const specs = new SpecTable();
  const rewriter = new Rewriter(code);
  for (const found of imports.toSorted((one, other) => one.start - other.start)) {
    const problem = take(found, specs, rewriter);
    if (problem !== undefined) return failed('import', problem, toCodePosition(code, found.start));
  }
  return {
    ok: true,
    packages: specs.list(),
    eager: toEager(code, parsed),
    code: rewriter.finish(),
    warnings: toWarnings(code, unreadable),
  };
}

/**
 * Packages that are imported before the first line runs, in order, up to the first import whose turn or meaning cannot be
 * told. Bun leaves out those of which nothing is used.
 */
function toEager(code: string, { module }: ParseResult): string[] {
  const names = new Set<string>();
  const exportsOthers = module.staticExports.some(({ entries }) =>
    entries.some(({ moduleRequest }) => moduleRequest !== null),
  );
  // SECURITY: all of the code is read again for each of them.
  const imports = exportsOthers ? [] : module.staticImports.slice(0, MOST_EAGER);
  for (const { start, end, moduleRequest, entries } of imports) {
    const specifier = readSpecifier(moduleRequest.value);
    const isPlain =
      !/^import\s+(?:defer|type)\b/.test(code.slice(start, end)) &&
      !code.slice(moduleRequest.end, end).includes('{');
    if (!isPlain || LOADS_CODE.test(moduleRequest.value)) break;
    const others = `${code.slice(0, start)} ${code.slice(end)}`;
    const isWanted =
      entries.length === 0 ||
      entries.some(({ isType, localName }) => !isType && isUsed(localName.value, others));
    if (specifier.kind === 'package' && isWanted) names.add(specifier.plain);
  }
  return [...names];
}

/** By its name alone: too often yes costs a package that is loaded for nothing. */
function isUsed(name: string, others: string): boolean {
  const word = new RegExp(String.raw`(?<![\w$])${name.replaceAll('$', String.raw`\$`)}(?![\w$])`, 'u');
  return word.test(others);
}

/** Says what is wrong with it, if anything is. */
function take(found: FoundImport, specs: SpecTable, rewriter: Rewriter): string | undefined {
  const specifier = readSpecifier(found.text);
  if (specifier.kind === 'own') return undefined;
  if (specifier.kind === 'refused') return specifier.reason;
  try {
    specs.add(specifier.spec);
  } catch (error) {
    if (!(error instanceof HotcellError)) throw error;
    return error.message;
  }
  if (specifier.plain === found.text || rewriter.replace(found, specifier.plain)) return undefined;
  return `the import of ${specifier.plain} must stand in one line`;
}

/** Puts other literals into code, none longer than the one before, so that nothing else moves. */
class Rewriter {
  readonly #code: string;
  readonly #pieces: string[] = [];
  #written = 0;

  constructor(code: string) {
    this.#code = code;
  }

  /** Says whether it could; in the order in which they stand. */
  replace({ start, end }: FoundImport, text: string): boolean {
    const literal = this.#code.slice(start, end);
    // Its lines would be lost.
    if (literal.length < text.length + 2 || /[\n\r\u2028\u2029]/.test(literal)) return false;
    const quote = literal.slice(0, 1);
    const plain = `${quote}${text}${quote}`.padEnd(literal.length);
    this.#pieces.push(this.#code.slice(this.#written, start), plain);
    this.#written = end;
    return true;
  }

  finish(): string {
    return this.#pieces.join('') + this.#code.slice(this.#written);
  }
}

function toWarnings(code: string, unreadable: readonly number[]): string[] {
  return unreadable
    .toSorted((one, other) => one - other)
    .slice(0, MOST_WARNINGS)
    .map((start) => {
      const { line } = toCodePosition(code, start);
      return `line ${line}: what is imported here is only known when the code runs; packages must be asked for by name`;
    });
}

const NOWHERE: CodePosition = { line: 1, column: 1, frame: '' };

export function failed(
  kind: ScanProblem['kind'],
  message: string,
  place: CodePosition = NOWHERE,
): ImportScan {
  return { ok: false, problem: { kind, message, ...place } };
}
