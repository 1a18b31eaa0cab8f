/** One word of a command after the removal of quotes. What only a shell could know, such as `$x`, stays as written. */
export interface Word {
  readonly text: string;
  /** It begins with the home folder, from `~` or `$HOME`; `text` is what follows. */
  readonly fromHome: boolean;
}

export interface UnfinishedWord {
  text: string;
  fromHome: boolean;
  quoted: boolean;
}

/** Where words are gathered: a list of commands, such as a whole script or what stands in `$( )`. */
export interface Scope {
  words: UnfinishedWord[];
  word: UnfinishedWord | undefined;
  /** Index of the program among the words, once there is one. */
  programAt: number | undefined;
  /** What the next word is for. */
  next: 'argument' | 'target' | 'delimiter' | 'indented delimiter';
  /** A place where operators of the shell only part words, and words are no commands. */
  quiet: 'array' | 'pattern' | 'test' | undefined;
  openCases: number;
}

const KEYWORDS = new Set('! { } if then else elif fi while until do done time coproc esac'.split(' '));
const ASSIGNMENT = /^[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=/;

export function emptyScope(quiet?: 'array'): Scope {
  return { words: [], word: undefined, programAt: undefined, next: 'argument', quiet, openCases: 0 };
}

export function wordOf(scope: Scope): UnfinishedWord {
  scope.word ??= { text: '', fromHome: false, quoted: false };
  return scope.word;
}

export function addQuoted(scope: Scope, text: string): void {
  const word = wordOf(scope);
  word.text += text;
  word.quoted = true;
}

export function addHome(scope: Scope): void {
  const word = wordOf(scope);
  if (word.text === '' && !word.fromHome) word.fromHome = true;
  else word.text += '$HOME';
}

export function addWord(scope: Scope, word: UnfinishedWord): void {
  const { text, quoted } = word;
  if (scope.quiet === 'array') return;
  if (scope.quiet === 'pattern') {
    if (text !== 'esac' || quoted) return;
    scope.quiet = undefined;
    scope.openCases--;
    return;
  }
  const index = scope.words.push(word) - 1;
  const isBefore = ASSIGNMENT.test(text) || (!quoted && KEYWORDS.has(text));
  if (scope.programAt === undefined && !isBefore) scope.programAt = index;
  if (scope.quiet === 'test') {
    if (text === ']]') scope.quiet = undefined;
  } else if (text === '[[' && index === scope.programAt) scope.quiet = 'test';
  else if (text === 'in' && index - 2 === scope.programAt && isKeyword(scope.words[index - 2], 'case')) {
    scope.quiet = 'pattern';
    scope.openCases++;
    scope.words = [];
    scope.programAt = undefined;
  }
}

function isKeyword(word: UnfinishedWord | undefined, keyword: string): boolean {
  return word !== undefined && !word.quoted && word.text === keyword;
}
