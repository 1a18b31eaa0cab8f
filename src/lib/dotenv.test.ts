import { describe, expect, test } from 'vitest';
import { parseDotenv } from './dotenv.ts';

const KiB = 1024;

describe('what a .env file says', () => {
  test.each<[string, Record<string, string>]>([
    ['', {}],
    ['A=1', { A: '1' }],
    ['A=1\nB=2\n', { A: '1', B: '2' }],
    ['A=1\r\nB=2\r\n', { A: '1', B: '2' }],
    ['\uFEFFA=1', { A: '1' }],
    ['  A = 1  ', { A: '1' }],
    ['export A=1\nexport\tB=2', { A: '1', B: '2' }],
    ['export=1', { export: '1' }],
    ['A=', { A: '' }],
    ['A=\nB=2', { A: '', B: '2' }],
    ['A=""\nB=\'\'', { A: '', B: '' }],
    ['# A=1\n\n  # B=2\nC=3', { C: '3' }],
    ['A=1 # note\nB=1#2\nC=# note\nD=a\t# note', { A: '1', B: '1#2', C: '', D: 'a' }],
    ['A="1 # 2" # note\nB=\'1 # 2\' # note', { A: '1 # 2', B: '1 # 2' }],
    ['A=a b  c', { A: 'a b  c' }],
    ['A="  a "\nB=\'  b \'', { A: '  a ', B: '  b ' }],
    ['A="a\\nb\\tc\\"d\\\\e\\$f\\qg"', { A: 'a\nb\tc"d\\e$f\\qg' }],
    ["A='a\\nb'", { A: 'a\\nb' }],
    ['A=a\\nb', { A: 'a\\nb' }],
    ['A="one\ntwo\n  three"\nB=2', { A: 'one\ntwo\n  three', B: '2' }],
    ["A='one\nB=2", { A: "'one", B: '2' }],
    ['A="one\nB=2', { A: '"one', B: '2' }],
    ["A=it's\nB='x'", { A: "it's", B: 'x' }],
    ['A="x"y\nB=2', { A: 'x', B: '2' }],
    ['A=1\nA=2', { A: '2' }],
    [
      'A=$B ${C} $(touch x) `touch y`\nB="$(touch z)"',
      { A: '$B ${C} $(touch x) `touch y`', B: '$(touch z)' },
    ],
    ['A=a=b=c', { A: 'a=b=c' }],
    ['A=grün 😀', { A: 'grün 😀' }],
    ['no assignment\nA=1', { A: '1' }],
    ['1A=x\nA-B=x\nA.B=x\nÄ=x\n=x\nA B=x\nOK=1', { OK: '1' }],
    ['LD_PRELOAD=/workspace/x.so\nPATH=/x', { LD_PRELOAD: '/workspace/x.so', PATH: '/x' }],
  ])('[RS-04] %j', (text, variables) => {
    expect(parseDotenv(text)).toEqual(variables);
  });

  test.each(['BASH_ENV', 'ENV', 'PROMPT_COMMAND', 'SHELLOPTS', 'BASHOPTS', 'HOTCELL_', 'HOTCELL_API_KEY'])(
    '[RS-04] %s, which would act on our own shell, is not taken over',
    (name) => {
      expect(parseDotenv(`A=1\n${name}=x\nexport ${name}="x"\nMY_${name}=2`)).toEqual({
        A: '1',
        [`MY_${name}`]: '2',
      });
    },
  );

  test('[RS-04] names of JavaScript are names like others, or none', () => {
    const variables = parseDotenv('__proto__=x\nconstructor=y\ntoString=z');
    expect(Object.entries(variables)).toEqual([
      ['constructor', 'y'],
      ['toString', 'z'],
    ]);
    expect(Object.getPrototypeOf(variables)).toBe(Object.prototype);
  });
});

describe('hostile files', () => {
  test('[RS-04] what no environment can hold is left out', () => {
    expect(parseDotenv('A=a\0b\nB="\0"\nC=\ud800\nD=1')).toEqual({ D: '1' });
    expect(parseDotenv(`A=${'x'.repeat(32 * KiB + 1)}\nB=${'x'.repeat(32 * KiB)}`)).toEqual({
      B: 'x'.repeat(32 * KiB),
    });
    expect(parseDotenv(`${'N'.repeat(257)}=1\n${'N'.repeat(256)}=1`)).toEqual({ ['N'.repeat(256)]: '1' });
  });

  test('[RS-04] the whole is bounded, in number and in size', () => {
    const many = Array.from({ length: 100_000 }, (_, index) => `V${index}=1`).join('\n');
    expect(Object.keys(parseDotenv(many))).toHaveLength(1024);
    const large = Array.from({ length: 1000 }, (_, index) => `V${index}=${'x'.repeat(30 * KiB)}`).join('\n');
    expect(JSON.stringify(parseDotenv(large)).length).toBeLessThan(300 * KiB);
    const again = Array.from({ length: 1000 }, () => `V=${'x'.repeat(30 * KiB)}`).join('\n');
    const last = 'y'.repeat(20 * KiB);
    expect(parseDotenv(`${again}\nV=${last}`)).toEqual({ V: last });
  });

  test('[RS-04] a value of nothing but escapes is no way to break down', () => {
    const escapes = '\\n'.repeat(2_000_000);
    expect(parseDotenv(`A="${escapes}"\nB=1`)).toEqual({ B: '1' });
    expect(parseDotenv(`A="${escapes}\nB=1`)).toEqual({ B: '1' });
  });

  test.each([
    '"',
    "'",
    'A="',
    "A='",
    'A="\\',
    'A="\\"\n',
    '\\',
    '=',
    'A=',
    'A',
    ' ',
    '\n',
    'A= #',
    '#',
    'export ',
    '\r',
    '\t',
  ])('[RS-04] a file of %j alone takes no more than bounded time', (piece) => {
    const whole = piece.repeat(Math.ceil((256 * KiB) / piece.length));
    const half = whole.slice(0, whole.length / 2);
    const measure = (text: string): number => {
      // What this process has used: others on the machine do not count.
      const start = process.cpuUsage();
      parseDotenv(text);
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1000;
    };
    const best = (text: string): number => Math.min(...[1, 2, 3, 4, 5].map(() => measure(text)));
    measure(half);
    expect(best(whole)).toBeLessThan(3.2 * best(half) + 40);
  });
});
