import type { ShellText } from './shell-reader.ts';
import type { Word } from './shell-scope.ts';

/** What else a simple command runs. */
export interface Inner {
  readonly commands: readonly (readonly Word[])[];
  readonly scripts: readonly ShellText[];
}

/** How a program that starts another one is called: `timeout -k 5 10 make`. */
interface Wrapper {
  /** Letters of its options that take a value. */
  readonly valued?: string;
  /** Long options that take a value as the next word. */
  readonly valuedLong?: readonly string[];
  /** Words of its own before the command. */
  readonly operands?: number;
  /** It takes assignments before the command. */
  readonly assigns?: boolean;
  /** Letters of options with which it only tells about the command. */
  readonly onlyTells?: string;
}

const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  ['builtin', {}],
  ['busybox', {}],
  ['chroot', { operands: 1, valuedLong: ['--userspec', '--groups'] }],
  ['command', { onlyTells: 'vV' }],
  ['doas', { valued: 'uC' }],
  ['env', { valued: 'uC', valuedLong: ['--unset', '--chdir'], assigns: true }],
  ['exec', { valued: 'a' }],
  ['ionice', { valued: 'cnpPu', valuedLong: ['--class', '--classdata'] }],
  ['nice', { valued: 'n', valuedLong: ['--adjustment'] }],
  ['nohup', {}],
  ['setsid', {}],
  ['stdbuf', { valued: 'ioe', valuedLong: ['--input', '--output', '--error'] }],
  [
    'sudo',
    {
      valued: 'ABCDghpRrTtUu',
      valuedLong: ['--user', '--group', '--chdir', '--host', '--prompt'],
      assigns: true,
    },
  ],
  ['time', { valued: 'fo', valuedLong: ['--format', '--output'] }],
  ['timeout', { valued: 'ks', valuedLong: ['--kill-after', '--signal'], operands: 1 }],
  [
    'xargs',
    {
      valued: 'adEILnPs',
      valuedLong: ['--arg-file', '--delimiter', '--max-args', '--max-procs', '--max-lines', '--max-chars'],
    },
  ],
]);

const SHELLS = new Set(['ash', 'bash', 'dash', 'ksh', 'sh', 'zsh']);
const ASSIGNMENT = /^[A-Za-z_]\w*=/;
const NONE: Inner = { commands: [], scripts: [] };

/** The program that a word starts, or undefined for a program in a folder of the user: that one is their own. */
export function programOf({ text, fromHome }: Word): string | undefined {
  if (fromHome) return undefined;
  if (text.startsWith('/')) return text.slice(text.lastIndexOf('/') + 1);
  return text.includes('/') ? undefined : text;
}

/** One step inwards: `env X=1 timeout 5 cmd` has `timeout 5 cmd` inside, `bash -c '…'` a script. */
export function innerOf(words: readonly Word[]): Inner {
  const program = words[0] === undefined ? undefined : programOf(words[0]);
  if (program === undefined) return NONE;
  if (SHELLS.has(program)) return toScripts(scriptOf(words));
  if (program === 'eval') return toScripts(words.slice(1).map(textOf).join(' '));
  if (program === 'find') return { commands: foundCommands(words), scripts: [] };
  if (program === 'env') {
    const script = splitString(words);
    if (script !== undefined) return toScripts(script);
  }
  const wrapper = WRAPPERS.get(program);
  if (wrapper === undefined) return NONE;
  const command = wrappedCommand(words, wrapper);
  return command.length === 0 ? NONE : { commands: [command], scripts: [] };
}

function wrappedCommand(words: readonly Word[], wrapper: Wrapper): readonly Word[] {
  const { valued = '', valuedLong = [], operands = 0, assigns = false, onlyTells = '' } = wrapper;
  let at = 1;
  for (; at < words.length; at++) {
    const option = words[at]?.text ?? '';
    if (!option.startsWith('-')) break;
    if (option === '--') {
      at++;
      break;
    }
    if (option.startsWith('--')) {
      if (valuedLong.includes(option)) at++;
      continue;
    }
    const letters = option.slice(1, 64).split('');
    if (letters.some((letter) => onlyTells.includes(letter))) return [];
    // -n5 has its value with it, -n 5 has it in the next word.
    if (letters.findIndex((letter) => valued.includes(letter)) === letters.length - 1 && letters.length > 0)
      at++;
  }
  if (assigns) while (ASSIGNMENT.test(words[at]?.text ?? '')) at++;
  return words.slice(at + operands);
}

/** The text of `bash -c text`. */
function scriptOf(words: readonly Word[]): string | undefined {
  let isNext = false;
  for (let at = 1; at < words.length; at++) {
    const text = words[at]?.text ?? '';
    if (!/^[-+]/.test(text)) return isNext ? text : undefined;
    if (text.startsWith('--')) continue;
    if (/^-[A-Za-z]*c/.test(text)) isNext = true;
    if (/^[-+][A-Za-z]*[oO]$/.test(text)) at++;
  }
  return undefined;
}

/** The text of `env -S text`. */
function splitString(words: readonly Word[]): string | undefined {
  const at = words.findIndex(({ text }, index) => index > 0 && !ASSIGNMENT.test(text));
  const option = words[at]?.text ?? '';
  if (option === '-S' || option === '--split-string') return words[at + 1]?.text;
  return /^(?:-S|--split-string=)([^]*)$/.exec(option)?.[1];
}

/** What `find … -exec … ;` runs. */
function foundCommands(words: readonly Word[]): readonly (readonly Word[])[] {
  const commands: Word[][] = [];
  let command: Word[] | undefined;
  for (const word of words) {
    if (command === undefined) {
      if (/^-(?:exec|execdir|ok|okdir)$/.test(word.text)) commands.push((command = []));
    } else if (word.text === ';' || word.text === '+') command = undefined;
    else command.push(word);
  }
  return commands;
}

function toScripts(text: string | undefined): Inner {
  return text === undefined ? NONE : { commands: [], scripts: [{ kind: 'script', text }] };
}

function textOf({ text, fromHome }: Word): string {
  return fromHome ? `~${text}` : text;
}
