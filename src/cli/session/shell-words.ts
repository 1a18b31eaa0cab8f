/**
 * The command line for `bash -c`. One word is a command line already. Several words are a program and its arguments, and
 * arrive as they are, whatever characters are in them.
 */
export function toCommandLine(words: readonly string[]): string {
  const [only] = words;
  return only !== undefined && words.length === 1 ? only : words.map(toWord).join(' ');
}

/** Words that begin a construct of bash where a program is expected. */
const KEYWORDS: ReadonlySet<string> = new Set(
  'if then else elif fi case esac for select while until do done in function time coproc'.split(' '),
);

function toWord(word: string): string {
  return /^[A-Za-z0-9_@%+:,./-]+$/.test(word) && !KEYWORDS.has(word) ? word : quote(word);
}

/** SECURITY: between single quotes bash takes nothing for anything but itself; they themselves stand outside. */
function quote(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
