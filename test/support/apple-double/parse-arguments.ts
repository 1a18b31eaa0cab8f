import { usageError, type CliError } from './cli-error.ts';
import {
  ALIASES,
  COMMANDS,
  GROUPS,
  keyOf,
  readOption,
  type CommandGrammar,
  type OptionGrammar,
} from './grammar.ts';
import { isAtLeast } from './versions.ts';

export interface ParsedCall {
  readonly command: string;
  readonly options: Options;
  readonly positionals: readonly string[];
}

/** Somebody asked for help or the version instead. */
export interface Shown {
  readonly shown: 'help' | 'version';
}

/** The values of options by their long names. */
export class Options {
  readonly #values = new Map<string, string[]>();

  add(option: OptionGrammar, value: string): void {
    const key = keyOf(option);
    const before = option.repeats ? (this.#values.get(key) ?? []) : [];
    this.#values.set(key, [...before, value]);
  }

  has(key: string): boolean {
    return this.#values.has(key);
  }

  one(key: string): string | undefined {
    return this.#values.get(key)?.[0];
  }

  all(key: string): readonly string[] {
    return this.#values.get(key) ?? [];
  }
}

const VALUE_KINDS: Readonly<Record<string, RegExp>> = {
  u32: /^\+?\d{1,10}$/,
  i64: /^[+-]?\d{1,18}$/,
  i32: /^[+-]?\d{1,9}$/,
  int: /^[+-]?\d{1,18}$/,
  double: /^[+-]?\d+(\.\d+)?$/,
};

/** As swift-argument-parser 1.8.2 reads the words of a call. */
export function parseArguments(
  argv: readonly string[],
  version: string,
  servicesRun: boolean,
): ParsedCall | Shown {
  const { command, rest, shown } = findCommand(argv, servicesRun);
  if (shown !== undefined) return { shown };
  const grammar = COMMANDS[command];
  if (grammar === undefined) throw new Error(`no grammar for ${command}`);
  return new Reader(command, grammar, version).read(rest);
}

function findCommand(argv: readonly string[], servicesRun: boolean) {
  const words = [...argv];
  const path: string[] = [];
  for (;;) {
    const word = words.shift();
    if (word === undefined || word === '--help' || word === '-h' || word === 'help')
      return { command: '', rest: [], shown: 'help' as const };
    if (word === '--version') return { command: '', rest: [], shown: 'version' as const };
    if (word === '--debug') continue;
    if (word.startsWith('-')) throw unknownOption('', word, []);
    path.push(ALIASES[word] ?? word);
    const command = path.join(' ');
    if (COMMANDS[command] !== undefined) return { command, rest: words, shown: undefined };
    if (path.length === 1 && GROUPS.has(command)) continue;
    if (path.length > 1) throw usageError(path[0] ?? '', `Unexpected argument '${word}'`);
    throw usageError(
      '',
      servicesRun
        ? `Plugin 'container-${word}' not found.`
        : 'Plugins are unavailable. Start the container system services and retry:',
    );
  }
}

class Reader {
  readonly #command: string;
  readonly #grammar: CommandGrammar;
  readonly #options: readonly OptionGrammar[];
  readonly #values = new Options();
  readonly #positionals: string[] = [];

  constructor(command: string, grammar: CommandGrammar, version: string) {
    this.#command = command;
    this.#grammar = grammar;
    this.#options = grammar.options
      .map(readOption)
      .filter(({ since }) => since === undefined || isAtLeast(version, since));
  }

  read(argv: readonly string[]): ParsedCall | Shown {
    const passesThrough = this.#grammar.positionals.some((name) => name.startsWith('...'));
    const words = [...argv];
    let word = words.shift();
    for (; word !== undefined; word = words.shift()) {
      if (word === '--') {
        // What follows is protected from everything.
        this.#positionals.push(...words.splice(0));
        break;
      }
      this.#refuseDashes(word);
      if (word.startsWith('-') && word !== '-') {
        if (word === '--help' || word === '-h') return { shown: 'help' };
        if (word === '--version') return { shown: 'version' };
        this.#readOption(word, words);
      } else {
        this.#positionals.push(word);
        if (!passesThrough) continue;
        for (const passed of words) this.#refuseDashes(passed);
        this.#positionals.push(...words.splice(0));
      }
    }
    this.#checkPositionals();
    return { command: this.#command, options: this.#values, positionals: this.#positionals };
  }

  #refuseDashes(word: string): void {
    if (/^---|^-=/.test(word)) throw this.#usage(`Invalid option: ${word}`);
  }

  #readOption(word: string, rest: string[]): void {
    const [name = '', ...more] = word.split('=');
    const attached = more.length === 0 ? undefined : more.join('=');
    if (name.startsWith('--') || name.length === 2) this.#take(name, attached, rest);
    else this.#readPacked(name, attached, rest);
  }

  /** `-it`: flags, of which the last may have a value. A value that is joined, as in `-m512m`, is none. */
  #readPacked(name: string, attached: string | undefined, rest: string[]): void {
    const letters = name
      .slice(1)
      .split('')
      .map((letter) => `-${letter}`);
    for (const [index, letter] of letters.entries()) {
      const option = this.#find(letter);
      const isLast = index === letters.length - 1;
      if (option === undefined || (option.kind !== undefined && !isLast))
        throw unknownOption(this.#command, name, []);
      this.#take(letter, isLast ? attached : undefined, rest);
    }
  }

  #take(name: string, attached: string | undefined, rest: string[]): void {
    const option = this.#find(name);
    if (option === undefined)
      throw unknownOption(
        this.#command,
        name,
        this.#options.flatMap(({ names }) => names),
      );
    if (option.kind === undefined) {
      if (attached !== undefined && attached !== '')
        throw this.#usage(`The option '${name}' does not take any value, but '${attached}' was specified.`);
      this.#values.add(option, '');
      return;
    }
    const label = `${name} <${keyOf(option)}>`;
    // An empty right side is none.
    const value = attached === undefined || attached === '' ? nextValue(rest) : attached;
    if (value === undefined) throw this.#usage(`Missing value for '${label}'\nHelp:  ${label}`);
    this.#checkValue(option.kind, value, label);
    this.#values.add(option, value);
  }

  #checkValue(kind: string, value: string, label: string): void {
    const choices = /^\{(.*)\}$/.exec(kind)?.[1]?.split(',');
    if (choices !== undefined && !choices.includes(value)) {
      const [last, ...others] = choices.toReversed().map((choice) => `'${choice}'`);
      const list = `${others.toReversed().join(', ')} or ${last}`;
      throw this.#usage(`The value '${value}' is invalid for '${label}'. Please provide one of ${list}.`);
    }
    const pattern = VALUE_KINDS[kind];
    if (pattern !== undefined && !pattern.test(value))
      throw this.#usage(`The value '${value}' is invalid for '${label}'\nHelp:  ${label}`);
  }

  #find(name: string): OptionGrammar | undefined {
    return this.#options.find(({ names }) => names.includes(name));
  }

  #checkPositionals(): void {
    const wanted = this.#grammar.positionals;
    const count = this.#positionals.length;
    const needed = wanted.filter((name) => !/[?*]$/.test(name));
    const missing = needed[count];
    if (missing !== undefined) {
      const many = missing.endsWith('+');
      const label = missing.replaceAll(/^\.\.\.|[?+*]$/g, '');
      throw this.#usage(`Missing expected argument '<${label}>${many ? ' ...' : ''}'`);
    }
    const takesMany = wanted.some((name) => /[*+]$|^\.\.\./.test(name));
    if (takesMany || count <= wanted.length) return;
    const extra = this.#positionals.slice(wanted.length).map((word) => `'${word}'`);
    throw this.#usage(
      extra.length === 1
        ? `Unexpected argument ${extra[0]}`
        : `${extra.length} unexpected arguments: ${extra.join(', ')}`,
    );
  }

  #usage(message: string): CliError {
    return usageError(this.#command, message);
  }
}

/** One that begins with a dash is no value, unless it is just that. */
function nextValue(rest: string[]): string | undefined {
  const [next] = rest;
  if (next === undefined || (next.startsWith('-') && next !== '-')) return undefined;
  return rest.shift();
}

function unknownOption(command: string, word: string, known: readonly string[]): CliError {
  const near = word.startsWith('--')
    ? known.find((name) => name.startsWith('--') && distance(word.slice(2), name.slice(2)) < 4)
    : undefined;
  return usageError(
    command,
    `Unknown option '${word}'${near === undefined ? '' : `. Did you mean '${near}'?`}`,
  );
}

/** How many letters have to be changed, added or removed. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of one.split('').entries()) {
    const next = [index + 1];
    for (const [column, against] of other.split('').entries()) {
      const replaced = (row[column] ?? 0) + (letter === against ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
