import { addHome, addQuoted, addWord, emptyScope, wordOf } from './shell-scope.ts';
import type { Scope, UnfinishedWord, Word } from './shell-scope.ts';
import { TextCursor } from '../lib/text-cursor.ts';

/** Text that is still to be read: a script, or a here-document, in which only substitutions are commands. */
export interface ShellText {
  readonly kind: 'script' | 'document';
  readonly text: string;
}

export interface ShellReading {
  /** Program and arguments of each simple command, without assignments, keywords and redirections before it. */
  readonly commands: readonly (readonly Word[])[];
  /** What runs too but has to be read by itself: backticks and here-documents. Never longer than what was read. */
  readonly nested: readonly ShellText[];
}

interface Frame {
  readonly mode: 'script' | 'quotes' | 'document' | 'parameter' | 'arithmetic';
  readonly scope: Scope;
  parentheses: number;
}

interface HereDocument {
  readonly delimiter: string;
  readonly indented: boolean;
  readonly literal: boolean;
}

const PLAIN_IN_SCRIPT = /[^ \t\n'"\\$`()&|;<>#~]+/y;
const PLAIN_IN_QUOTES = /[^"\\$`]+/y;
const PLAIN_IN_PARAMETER = /[^}'"\\$`]+/y;
const PLAIN_IN_ARITHMETIC = /[^()$`]+/y;
const REDIRECTION = /&>>?|<<<|<<-?|<[>&]?|>[>&|]?/y;
const VARIABLE = /\$(?:[A-Za-z_]\w*|[\d@*#?$!-])?/y;
const TILDE_ALONE = /~(?=[/ \t\n;&|()<>]|$)/y;

/**
 * Splits text into simple commands as bash would, well enough for honest input: quotes, substitutions, subshells, here-documents,
 * `case`, `[[ ]]`, arrays, arithmetic, comments. One pass with a stack of its own: the time is linear in the text, and
 * depth costs memory, not the call stack. Unfinished input is read as if it ended where it should.
 */
export function readShell({ kind, text }: ShellText): ShellReading {
  return new ShellReader(text, kind).read();
}

class ShellReader {
  readonly #cursor: TextCursor;
  readonly #frames: Frame[];
  readonly #commands: Word[][] = [];
  readonly #nested: ShellText[] = [];
  #documents: HereDocument[] = [];

  constructor(text: string, kind: ShellText['kind']) {
    this.#cursor = new TextCursor(text);
    this.#frames = [{ mode: kind, scope: emptyScope(), parentheses: 0 }];
  }

  read(): ShellReading {
    let frame = this.#frames.at(-1);
    while (frame !== undefined && !this.#cursor.isAtEnd) {
      this.#step(frame);
      frame = this.#frames.at(-1);
    }
    for (const { mode, scope } of this.#frames.toReversed()) if (mode === 'script') this.#endCommand(scope);
    return { commands: this.#commands, nested: this.#nested };
  }

  #step(frame: Frame): void {
    switch (frame.mode) {
      case 'script':
        this.#inScript(frame);
        break;
      case 'quotes':
      case 'document':
        this.#inQuotes(frame);
        break;
      case 'parameter':
        this.#inParameter(frame);
        break;
      case 'arithmetic':
        this.#inArithmetic(frame);
        break;
    }
  }

  #inScript(frame: Frame): void {
    const { scope } = frame;
    if (this.#takePlain(PLAIN_IN_SCRIPT, scope)) return;
    const character = this.#cursor.peek();
    if (character === ' ' || character === '\t') {
      this.#cursor.take();
      this.#endWord(scope);
    } else if (character === '\n') {
      this.#cursor.take();
      this.#endCommand(scope);
      this.#skipDocuments();
    } else if (character === "'") this.#takeQuoted(scope);
    else if (character === '"') {
      this.#cursor.take();
      addQuoted(scope, '');
      this.#push('quotes', scope);
    } else if (character === '\\') this.#takeEscaped(scope);
    else if (character === '#') {
      if (scope.word === undefined) this.#cursor.takeUntil('\n');
      else this.#take(1, scope);
    } else if (character === '~') this.#takeTilde(scope);
    else if (character === '(') this.#openParenthesis(scope);
    else if (character === ')') this.#closeParenthesis(scope);
    else if (';|&<>'.includes(character)) this.#takeOperator(scope);
    else this.#takeExpansion(frame);
  }

  #inQuotes(frame: Frame): void {
    const { mode, scope } = frame;
    if (this.#takePlain(PLAIN_IN_QUOTES, scope)) return;
    const character = this.#cursor.peek();
    if (character === '"') {
      if (mode === 'quotes') this.#frames.pop();
      this.#cursor.take();
    } else if (character === '\\') {
      const [, next = ''] = this.#cursor.take(2);
      if (next !== '\n') wordOf(scope).text += '$`"\\'.includes(next) ? next : `\\${next}`;
    } else this.#takeExpansion(frame);
  }

  #inParameter(frame: Frame): void {
    const { scope } = frame;
    if (this.#takePlain(PLAIN_IN_PARAMETER, scope)) return;
    const character = this.#cursor.peek();
    const isWithinQuotes = this.#frames.at(-2)?.mode !== 'script';
    if (character === '}') {
      this.#frames.pop();
      this.#take(1, scope);
    } else if (character === '"') {
      this.#cursor.take();
      this.#push('quotes', scope);
    } else if (character === "'") {
      if (isWithinQuotes) this.#take(1, scope);
      else this.#takeQuoted(scope);
    } else if (character === '\\') this.#take(2, scope);
    else this.#takeExpansion(frame);
  }

  #inArithmetic(frame: Frame): void {
    if (this.#cursor.takeMatch(PLAIN_IN_ARITHMETIC) !== undefined) return;
    const character = this.#cursor.peek();
    if (character !== '(' && character !== ')') {
      this.#takeExpansion(frame);
      return;
    }
    this.#cursor.take();
    frame.parentheses += character === '(' ? 1 : -1;
    if (frame.parentheses === 0) this.#frames.pop();
  }

  #openParenthesis(scope: Scope): void {
    const isAfterEquals = scope.word !== undefined && this.#cursor.previous === '=';
    this.#cursor.take();
    if (scope.quiet !== undefined) this.#endWord(scope);
    else if (isAfterEquals) this.#push('script', emptyScope('array'));
    else if (this.#cursor.peek() === '(') {
      this.#cursor.take();
      this.#endWord(scope);
      this.#push('arithmetic', scope, 2);
    } else {
      this.#endCommand(scope);
      this.#push('script', emptyScope());
    }
  }

  #closeParenthesis(scope: Scope): void {
    this.#cursor.take();
    this.#endWord(scope);
    if (scope.quiet === 'test') return;
    if (scope.quiet === 'pattern') {
      scope.quiet = undefined;
      return;
    }
    this.#endCommand(scope);
    if (this.#frames.length > 1) this.#frames.pop();
  }

  #takeOperator(scope: Scope): void {
    if (scope.quiet !== undefined) {
      this.#cursor.take();
      this.#endWord(scope);
      return;
    }
    const redirection = this.#cursor.takeMatch(REDIRECTION);
    if (redirection !== undefined) {
      this.#redirect(scope, redirection);
      return;
    }
    const endsBranch = /^;[;&]/.test(this.#cursor.peek(2)) && scope.openCases > 0;
    this.#cursor.take(endsBranch ? 2 : 1);
    this.#endCommand(scope);
    if (endsBranch) scope.quiet = 'pattern';
  }

  #redirect(scope: Scope, operator: string): void {
    // The digits of 2> are no argument.
    if (isDescriptor(scope.word)) scope.word = undefined;
    if ((operator === '<' || operator === '>') && this.#cursor.peek() === '(') {
      this.#cursor.take();
      wordOf(scope).text += `${operator}()`;
      this.#push('script', emptyScope());
      return;
    }
    this.#endWord(scope);
    if (operator === '<<') scope.next = 'delimiter';
    else if (operator === '<<-') scope.next = 'indented delimiter';
    else scope.next = 'target';
  }

  /** `$…` or a backtick. */
  #takeExpansion({ mode, scope }: Frame): void {
    const ahead = this.#cursor.peek('${HOME}'.length);
    if (ahead.startsWith('`')) this.#takeBackticks(scope);
    else if (ahead.startsWith('$((')) {
      this.#cursor.take(3);
      wordOf(scope).text += '$(())';
      this.#push('arithmetic', scope, 2);
    } else if (ahead.startsWith('$(')) {
      this.#cursor.take(2);
      wordOf(scope).text += '$()';
      this.#push('script', emptyScope());
    } else if (ahead === '${HOME}') {
      this.#cursor.take(ahead.length);
      addHome(scope);
    } else if (ahead.startsWith('${')) {
      this.#take(2, scope);
      this.#push('parameter', scope);
    } else if (ahead.startsWith("$'") && mode === 'script') {
      // Here a backslash protects a quote.
      this.#cursor.take(2);
      addQuoted(scope, this.#cursor.takeUntilUnescaped("'").replace(/\\([^])/g, '$1'));
      this.#cursor.take();
    } else {
      const variable = this.#cursor.takeMatch(VARIABLE) ?? '';
      if (variable === '$HOME') addHome(scope);
      else wordOf(scope).text += variable;
    }
  }

  #takeBackticks(scope: Scope): void {
    this.#cursor.take();
    const inside = this.#cursor.takeUntilUnescaped('`');
    this.#cursor.take();
    this.#nested.push({ kind: 'script', text: inside.replace(/\\([`\\$])/g, '$1') });
    wordOf(scope).text += '``';
  }

  #takeQuoted(scope: Scope): void {
    this.#cursor.take();
    addQuoted(scope, this.#cursor.takeUntil("'"));
    this.#cursor.take();
  }

  #takeEscaped(scope: Scope): void {
    const [, next = ''] = this.#cursor.take(2);
    if (next !== '\n') addQuoted(scope, next);
  }

  #takeTilde(scope: Scope): void {
    if (scope.word === undefined && this.#cursor.takeMatch(TILDE_ALONE) !== undefined) addHome(scope);
    else this.#take(1, scope);
  }

  #endWord(scope: Scope): void {
    const { word, next } = scope;
    if (word === undefined) return;
    scope.word = undefined;
    scope.next = 'argument';
    if (next === 'target') return;
    if (next !== 'argument') {
      this.#documents.push({
        delimiter: word.text,
        indented: next === 'indented delimiter',
        literal: word.quoted,
      });
    } else addWord(scope, word);
  }

  #endCommand(scope: Scope): void {
    this.#endWord(scope);
    if (scope.quiet !== undefined) return;
    scope.next = 'argument';
    if (scope.programAt !== undefined) this.#commands.push(scope.words.slice(scope.programAt));
    scope.words = [];
    scope.programAt = undefined;
  }

  /** The bodies of here-documents begin on the line after the one that announces them. */
  #skipDocuments(): void {
    for (const { delimiter, indented, literal } of this.#documents) {
      const lines: string[] = [];
      while (!this.#cursor.isAtEnd) {
        const line = this.#cursor.takeUntil('\n');
        this.#cursor.take();
        if ((indented ? line.replace(/^\t+/, '') : line) === delimiter) break;
        lines.push(line);
      }
      if (!literal) this.#nested.push({ kind: 'document', text: lines.join('\n') });
    }
    this.#documents = [];
  }

  #push(mode: Frame['mode'], scope: Scope, parentheses = 0): void {
    this.#frames.push({ mode, scope, parentheses });
  }

  #take(length: number, scope: Scope): void {
    wordOf(scope).text += this.#cursor.take(length);
  }

  #takePlain(pattern: RegExp, scope: Scope): boolean {
    const plain = this.#cursor.takeMatch(pattern);
    if (plain !== undefined) wordOf(scope).text += plain;
    return plain !== undefined;
  }
}

function isDescriptor(word: UnfinishedWord | undefined): boolean {
  return word !== undefined && !word.quoted && word.text.length < 10 && /^\d+$/.test(word.text);
}
