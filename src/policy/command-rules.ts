import { innerOf, programOf } from './inner-commands.ts';
import { readShell } from './shell-reader.ts';
import type { ShellText } from './shell-reader.ts';
import type { Word } from './shell-scope.ts';

/** A script in a script in a script …: nobody honest goes deeper. */
const DEEPEST_SCRIPT = 8;
/** `env nohup timeout 5 nice …`: likewise. */
const MOST_WRAPPERS = 16;

export const RULE_NAMES = [
  'rm-root',
  'rm-home',
  'dd',
  'mkfs',
  'chmod-root',
  'sudo',
  'mount',
  'chroot',
  'tool-curl',
  'tool-wget',
  'tool-ssh',
  'tool-nc',
] as const;
export type RuleName = (typeof RULE_NAMES)[number];

interface Rule {
  readonly reason: string;
  readonly refuses: (program: string, words: readonly Word[]) => boolean;
}

const RULES: Readonly<Record<RuleName, Rule>> = {
  'rm-root': {
    reason: 'removes everything below /',
    refuses: (program, words) => program === 'rm' && isRecursive(words) && words.some(isRoot),
  },
  'rm-home': {
    reason: 'removes the whole home folder',
    refuses: (program, words) => program === 'rm' && isRecursive(words) && words.some(isHome),
  },
  dd: {
    reason: 'dd copies to and from devices',
    refuses: (program, words) => program === 'dd' && words.some(({ text }) => /^[io]f=/.test(text)),
  },
  mkfs: {
    reason: 'makes a file system over whatever is there',
    refuses: (program) => program === 'mkfs' || program.startsWith('mkfs.'),
  },
  'chmod-root': {
    reason: 'changes the permissions of /',
    refuses: (program, words) => program === 'chmod' && words.some(isRoot),
  },
  sudo: called('asks for privileges that nobody has in a session', ['sudo']),
  mount: called('changes what is mounted', ['mount']),
  chroot: called('changes the root folder', ['chroot']),
  'tool-curl': called('curl is blocked here', ['curl']),
  'tool-wget': called('wget is blocked here', ['wget']),
  'tool-ssh': called('ssh is blocked here', ['ssh']),
  'tool-nc': called('nc is blocked here', ['nc', 'ncat', 'netcat', 'nc.openbsd', 'nc.traditional']),
};

/**
 * The first of `rules` that refuses the command, if any does. Names that are no rules refuse nothing.
 *
 * This is advice for honest users, and no boundary: it reads the text of a command, and whoever wants to get around it
 * does so with a variable, an encoding, or a program of their own. What keeps a session from doing harm is its cell.
 */
export function refusedBy(
  command: string,
  rules: readonly string[],
): { rule: string; reason: string } | undefined {
  const active = RULE_NAMES.filter((name) => rules.includes(name));
  if (active.length === 0) return undefined;
  for (const words of simpleCommands(command)) {
    const program = words[0] === undefined ? undefined : programOf(words[0]);
    if (program === undefined) continue;
    const rule = active.find((name) => RULES[name].refuses(program, words));
    if (rule !== undefined) return { rule, reason: RULES[rule].reason };
  }
  return undefined;
}

/** Level by level: all texts of one level together are no longer than the command, which bounds the time. */
function* simpleCommands(command: string): Generator<readonly Word[]> {
  let level: readonly ShellText[] = [{ kind: 'script', text: command }];
  for (let depth = 0; depth < DEEPEST_SCRIPT && level.length > 0; depth++) {
    const deeper: ShellText[] = [];
    for (const source of level) {
      const { commands, nested } = readShell(source);
      for (const part of nested) deeper.push(part);
      for (const words of commands) yield* unwrapped(words, deeper);
    }
    level = deeper;
  }
}

/** A command and the ones that it starts; the scripts among them go to `scripts`. */
function* unwrapped(command: readonly Word[], scripts: ShellText[]): Generator<readonly Word[]> {
  let layer: readonly (readonly Word[])[] = [command];
  for (let depth = 0; depth < MOST_WRAPPERS && layer.length > 0; depth++) {
    yield* layer;
    const inner = layer.map(innerOf);
    for (const one of inner) for (const script of one.scripts) scripts.push(script);
    layer = inner.flatMap((one) => one.commands);
  }
}

function called(reason: string, programs: readonly string[]): Rule {
  return { reason, refuses: (program) => programs.includes(program) };
}

/** Without -f it only asks first, and nobody is there to answer. */
function isRecursive(words: readonly Word[]): boolean {
  const end = words.findIndex(({ text }) => text === '--');
  const options = end === -1 ? words : words.slice(0, end);
  return options.some(
    ({ text }) => /^-[A-Za-z]*[rR]/.test(text) || (text.length > 2 && '--recursive'.startsWith(text)),
  );
}

function isRoot({ text, fromHome }: Word): boolean {
  return !fromHome && text.startsWith('/') && isAllOfFolder(text);
}

function isHome({ text, fromHome }: Word): boolean {
  return fromHome && (text === '' || text.startsWith('/')) && isAllOfFolder(text);
}

/** `/`, `//`, `/.`, `/*`, `/usr/..` and the like, below the root or the home. */
function isAllOfFolder(path: string): boolean {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  return parts.length === 0 || (parts.length === 1 && parts[0] === '*');
}
