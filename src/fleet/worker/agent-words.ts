/** What an agent may say at its end in place of an exit code. The prompt explains it. */
export type Verdict =
  { readonly kind: 'done' } | { readonly kind: 'continue' | 'blocked' | 'ask'; readonly reason: string };

/** Agents like to wrap lines in marks of Markdown. */
const LINE = /^[\s>*_`#-]*HOTCELL:[\s*_`]*(done|continue|blocked|ask)\b[\s*_`:.,–—-]*(.*?)[\s*_`]*$/i;
/** After it there may be a closing fence, or a polite word. */
const LAST_LINES = 5;

/** Undefined where the agent has not said anything of the kind: then its exit code and the verification tell. */
export function readVerdict(words: string): Verdict | undefined {
  const lines = words.trimEnd().split('\n').slice(-LAST_LINES).toReversed();
  for (const line of lines) {
    const [, kind = '', reason = ''] = LINE.exec(line.slice(0, 4000)) ?? [];
    switch (kind.toLowerCase()) {
      case 'done':
        return { kind: 'done' };
      case 'continue':
        return { kind: 'continue', reason };
      case 'blocked':
        return { kind: 'blocked', reason: reason === '' ? words.trim() : reason };
      case 'ask':
        return { kind: 'ask', reason: reason === '' ? words.trim() : reason };
      default:
    }
  }
  return undefined;
}

/** For the prompt. */
export const HOW_TO_END = [
  '## How to end',
  'Do NOT commit: that is done for you. The last line of your answer is one of these, alone on its line:',
  '',
  '    HOTCELL: done',
  '    HOTCELL: continue - what is still to be done (you are called again with what you have so far)',
  '    HOTCELL: blocked - why you cannot go on',
  '    HOTCELL: ask - what a person has to decide',
  '',
  'A program may say the same by its exit code: 0, 2, 3, 4. Then the last lines of its output say why.',
].join('\n');
