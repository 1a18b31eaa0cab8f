import { HotcellError } from '../core/errors.ts';
import { toGitPath, toHeaderPath, unquote } from './patch-path.ts';

export interface HunkLine {
  readonly kind: 'context' | 'removed' | 'added';
  /** With its line end, unless the diff says that the file has none there. */
  readonly text: string;
}

export interface Hunk {
  /** Counted from 1, as it stands in the diff. */
  readonly oldStart: number;
  readonly oldCount: number;
  readonly lines: readonly HunkLine[];
}

/** What a diff does to one file. */
export interface FilePatch {
  readonly path: string;
  readonly action: 'modify' | 'create' | 'delete';
  /** If the diff gives it. */
  readonly mode: number | undefined;
  readonly hunks: readonly Hunk[];
}

export function patchRefused(message: string): HotcellError {
  return new HotcellError('PATCH_REFUSED', message, { field: 'diff' });
}

const HUNK = /^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@/;
const UNSUPPORTED: readonly (readonly [RegExp, string])[] = [
  [/^(rename|copy) (from|to) /, 'renames and copies are not supported: send the file as deleted and as new'],
  [/^(GIT binary patch|Binary files .* differ)$/, 'binary files are not supported'],
  [
    /^(new file mode|deleted file mode|old mode|new mode) (?!100)\d+$/,
    'only plain files are supported, no links',
  ],
];

/** A unified diff of one or more files, as `git diff` and `diff -u` make it. Text between the files is passed over. */
export function parsePatch(diff: string): FilePatch[] {
  const reader = new PatchReader(diff);
  const patches = reader.read();
  if (patches.length === 0) throw patchRefused('there is no file in the diff: it needs --- and +++ lines');
  const twice = patches.find(({ path }, at) => patches.findIndex((other) => other.path === path) < at);
  if (twice !== undefined) throw patchRefused(`${twice.path} stands in the diff twice`);
  return patches;
}

/** What the lines above the hunks of a file say. */
interface Head {
  git?: string | undefined;
  old?: string;
  new?: string;
  action?: FilePatch['action'];
  mode?: number;
  hunks: Hunk[];
}

class PatchReader {
  readonly #lines: readonly string[];
  readonly #patches: FilePatch[] = [];
  #at = 0;
  #head: Head | undefined;

  constructor(diff: string) {
    this.#lines = diff.split('\n');
  }

  read(): FilePatch[] {
    while (this.#at < this.#lines.length) this.#step();
    this.#finish();
    return this.#patches;
  }

  #step(): void {
    const line = this.#lines[this.#at] ?? '';
    const plain = line.replace(/\r$/, '');
    if (plain.startsWith('diff --git ')) {
      this.#finish();
      this.#head = { git: toGitPath(plain.slice('diff --git '.length)), hunks: [] };
    } else if (line.startsWith('--- ') && (this.#lines[this.#at + 1] ?? '').startsWith('+++ ')) {
      this.#begin(line.slice(4), (this.#lines[this.#at + 1] ?? '').slice(4));
      this.#at++;
    } else if (line.startsWith('@@ ')) {
      this.#hunk(line);
      return;
    } else if (this.#head !== undefined) {
      this.#extra(plain, this.#head);
    }
    this.#at++;
  }

  #begin(old: string, next: string): void {
    if (this.#head?.old !== undefined) this.#finish();
    this.#head ??= { hunks: [] };
    this.#head.old = unquote(old);
    this.#head.new = unquote(next);
  }

  #extra(line: string, head: Head): void {
    const problem = UNSUPPORTED.find(([pattern]) => pattern.test(line));
    if (problem !== undefined) throw patchRefused(`${nameOf(head)}: ${problem[1]}`);
    const [, what, digits] = /^(new file|deleted file|new) mode 100(\d{3})$/.exec(line) ?? [];
    if (what === 'new file') head.action = 'create';
    if (what === 'deleted file') head.action = 'delete';
    else if (digits !== undefined) head.mode = Number.parseInt(digits, 8);
    // A count that is too small would otherwise drop lines without a word.
    const isBody = head.hunks.length > 0 && /^[-+ \\]/.test(line) && line !== '-- ';
    if (isBody)
      throw patchRefused(`${nameOf(head)}: hunk ${head.hunks.length} has more lines than its header says`);
  }

  #hunk(line: string): void {
    const head = this.#head;
    if (head?.old === undefined) throw patchRefused('a hunk stands before the first file');
    const number = head.hunks.length + 1;
    const [, oldStart, oldCount = '1', , newCount = '1'] = HUNK.exec(line) ?? [];
    if (oldStart === undefined) throw patchRefused(`${nameOf(head)}: hunk ${number} has a broken header`);
    this.#at++;
    const lines = this.#hunkLines(Number(oldCount), Number(newCount));
    if (lines === undefined) {
      throw patchRefused(`${nameOf(head)}: hunk ${number} has not the lines that its header says`);
    }
    head.hunks.push({ oldStart: Number(oldStart), oldCount: Number(oldCount), lines });
  }

  #hunkLines(oldCount: number, newCount: number): HunkLine[] | undefined {
    const lines: HunkLine[] = [];
    let [old, fresh] = [oldCount, newCount];
    while (old > 0 || fresh > 0) {
      const line = this.#lines[this.#at];
      // The last one is what follows the end of the text.
      if (line === undefined || (line === '' && this.#at === this.#lines.length - 1)) return undefined;
      const kind = toKind(line);
      if (kind === undefined) return undefined;
      this.#at++;
      if (kind !== 'added') old--;
      if (kind !== 'removed') fresh--;
      if (old < 0 || fresh < 0) return undefined;
      const hasEnd = !(this.#lines[this.#at] ?? '').startsWith('\\');
      if (!hasEnd) this.#at++;
      lines.push({ kind, text: line.slice(1) + (hasEnd ? '\n' : '') });
    }
    return lines;
  }

  #finish(): void {
    const head = this.#head;
    this.#head = undefined;
    if (head === undefined) return;
    const isEmpty = head.hunks.length === 0;
    // `diff -r` and others write such lines about files that they do not show.
    if (isEmpty && head.action === undefined && head.mode === undefined) {
      if (head.old === undefined && head.git === undefined) return;
      throw patchRefused(`${nameOf(head)}: nothing is changed`);
    }
    this.#patches.push({ ...toTarget(head), mode: head.mode, hunks: head.hunks });
  }
}

/** An empty line stands for an empty line of context: editors like to cut the space. */
function toKind(line: string): HunkLine['kind'] | undefined {
  if (line === '' || line === '\r') return 'context';
  return ({ ' ': 'context', '-': 'removed', '+': 'added' } as const)[line[0] ?? ''];
}

function nameOf(head: Head): string {
  return head.git ?? (head.new === '/dev/null' ? head.old : head.new) ?? 'a file';
}

function toTarget(head: Head): Pick<FilePatch, 'path' | 'action'> {
  const { git, old, new: next } = head;
  if (old === undefined || next === undefined) {
    if (git === undefined) throw patchRefused('a file of the diff has no name');
    return { path: git, action: head.action ?? 'modify' };
  }
  if (old === '/dev/null' && next === '/dev/null') throw patchRefused('a file of the diff has no name');
  if (old === '/dev/null') return { path: toHeaderPath(next, 'b/'), action: 'create' };
  if (next === '/dev/null') return { path: toHeaderPath(old, 'a/'), action: 'delete' };
  const hasPrefixes = old.startsWith('a/') && next.startsWith('b/');
  const names = hasPrefixes ? [old.slice(2), next.slice(2)] : [old, next];
  if (names[0] !== names[1]) {
    throw patchRefused(`${old} and ${next} are not the same file; renames are not supported`);
  }
  return { path: names[0] ?? '', action: head.action ?? 'modify' };
}
