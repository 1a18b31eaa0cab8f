import { TextCursor } from './text-cursor.ts';

/** More than any program is given; Linux starts none with much more. What does not fit is left out. */
const MOST_VARIABLES = 1024;
const MOST_CHARACTERS = 256 * 1024;
const LONGEST_VALUE = 32 * 1024;

/**
 * Names that a file of the workspace must not set. They do not act on the user's command but on the shell around it, which
 * keeps its folder and reports its end: BASH_ENV and ENV are scripts that it would run first, PROMPT_COMMAND one that it
 * would run between, SHELLOPTS and BASHOPTS can make it read commands without running them, and HOTCELL_… are our own
 * words to it. Others, LD_PRELOAD among them, only change what the user runs in a cell of their own.
 */
const NOT_TAKEN = /^(?:BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|__proto__|HOTCELL_.*)$/;

const BLANK = /[ \t]*/y;
const BLANK_LINES = /\s+/y;
const EXPORT = /export[ \t]+(?=[A-Za-z_])/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]{0,255}(?=[ \t]*=)/y;
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\', $: '$' };

/**
 * Variables of a `.env` file: `KEY=value`, `export KEY=value`, comments, 'single quotes' as they are, "double quotes" with
 * escapes and over several lines. Nothing is substituted. Lines that are no assignments are skipped, the last one
 * of a name counts. Linear in the text, and never throws.
 */
export function parseDotenv(text: string): Record<string, string> {
  const cursor = new TextCursor(text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n'));
  const variables = new Map<string, string>();
  let characters = 0;
  while (!cursor.isAtEnd) {
    cursor.takeMatch(BLANK_LINES);
    const assignment = takeAssignment(cursor);
    cursor.takeUntil('\n');
    if (assignment === undefined || !isTaken(assignment)) continue;
    const { name, value } = assignment;
    const before = variables.get(name);
    const added = value.length - (before === undefined ? -name.length : before.length);
    if (characters + added > MOST_CHARACTERS) continue;
    if (before === undefined && variables.size >= MOST_VARIABLES) continue;
    characters += added;
    variables.set(name, value);
  }
  return Object.fromEntries(variables);
}

interface Assignment {
  readonly name: string;
  readonly value: string;
}

/** NUL and half characters cannot stand in an environment. */
function isTaken({ name, value }: Assignment): boolean {
  return (
    !NOT_TAKEN.test(name) && value.length <= LONGEST_VALUE && !value.includes('\0') && value.isWellFormed()
  );
}

function takeAssignment(cursor: TextCursor): Assignment | undefined {
  cursor.takeMatch(EXPORT);
  const name = cursor.takeMatch(NAME);
  if (name === undefined) return undefined;
  cursor.takeUntil('=');
  cursor.take();
  cursor.takeMatch(BLANK);
  return { name, value: takeQuoted(cursor) ?? toPlain(cursor.takeUntil('\n')) };
}

/** Undefined when there are no quotes, or no closing one: then the quote is a character like others. */
function takeQuoted(cursor: TextCursor): string | undefined {
  const single = cursor.takeMatch(/'[^'\n]*'/y);
  if (single !== undefined) return single.slice(1, -1);
  const double = cursor.takeBetween('"');
  return double?.replace(/\\([^])/g, (whole, character: string) => ESCAPED[character] ?? whole);
}

/** Without quotes a comment begins with a # after a blank. */
function toPlain(line: string): string {
  const comment = /(?:^|[ \t])#/.exec(line);
  return line.slice(0, comment?.index).trim();
}
