import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { DetachKeys } from './detach-keys.ts';
import { toCommandLine } from './shell-words.ts';

test('[RS-20] several words reach the program as they are', () => {
  const words = [
    "it's",
    '',
    ' ',
    '$HOME',
    '`id`',
    '$(id)',
    '*',
    '~',
    'a\nb',
    '"',
    '\\',
    "'\\''",
    '!x',
    '#',
    '-n',
    '€',
    '{a,b}',
    'x=1',
    ';',
    '|',
    '\t',
  ];
  const commandLine = toCommandLine(['printf', '%s\\0', ...words]);
  const { stdout } = spawnSync('bash', ['-c', commandLine], { encoding: 'utf8' });
  expect(stdout.split('\0').slice(0, -1)).toEqual(words);
});

test('[RS-20] a program whose name looks like an assignment or a keyword is a program', () => {
  const { stderr } = spawnSync('bash', ['-c', toCommandLine(['A=1', 'env'])], { encoding: 'utf8' });
  expect(stderr).toContain('A=1');
  const second = spawnSync('bash', ['-c', toCommandLine(['if', 'x'])], { encoding: 'utf8' });
  expect(second.stderr).toContain('if: ');
});

test('[RS-20] one word is a command line', () => {
  expect(toCommandLine(['cd src && ls | wc -l'])).toBe('cd src && ls | wc -l');
});

test.each<[string, string[], string, boolean]>([
  ['what is typed', ['ls\r'], 'ls\r', false],
  ['the keys', ['ls\u001dd'], 'ls', true],
  ['the keys one by one', ['x', '\u001d', 'd'], 'x', true],
  ['nothing after them', ['\u001ddrm\r'], '', true],
  ['the first key twice', ['\u001d\u001d', 'd'], '\u001dd', false],
  ['the first key before another', ['\u001d', 'x'], '\u001dx', false],
  ['a d alone', ['dd'], 'dd', false],
])('[RS-20] leaving a terminal: %s', (_name, typed, passed, leaves) => {
  const keys = new DetachKeys();
  const seen = typed.map((text) => keys.take(Buffer.from(text)));
  expect(seen.map(({ pass }) => Buffer.from(pass).toString()).join('')).toBe(passed);
  expect(seen.at(-1)?.leaves).toBe(leaves);
});
